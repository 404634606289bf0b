package flags

import (
	"errors"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
)

// What is told of an engine that cannot be freed names what hangs.
func TestStuck(t *testing.T) {
	for want, left := range map[string]actors.LeftBehindError{
		"the disk does not answer":   {Reads: 2},
		"the disk does not take":     {Files: true},
		"the device does not end":    {Device: true},
		"its memory is just being f": {Err: errors.New("x")},
	} {
		if got := (&stuckError{&left}).Error(); !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", left, got, want)
		}
	}
}
