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
		"the disk does not answer": {Reads: 2},
		"the disk does not take":   {Files: true},
		"the device does not end":  {Device: true},
	} {
		if got := (&stuckError{&left}).Error(); !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", left, got, want)
		}
	}
}

// Memory that takes long to free is no failure of a program that ends: nothing hangs.
func TestStillFreeing(t *testing.T) {
	late := errors.New("deadline")
	for _, c := range []struct {
		err   error
		fails bool
	}{
		{nil, false},
		{late, true},
		{&actors.LeftBehindError{Err: late}, false},
		{&actors.LeftBehindError{Err: late, Spans: true}, true},
		{&actors.LeftBehindError{Err: late, Device: true}, true},
		{&actors.LeftBehindError{Err: late, Reads: 1}, true},
	} {
		if err := modelClosed(c.err); (err != nil) != c.fails {
			t.Errorf("%v: %v", c.err, err)
		}
	}
}
