package flags

import (
	"errors"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
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
		err           error
		fails, closes bool // whether Close fails, and closes the device
	}{
		{nil, false, true},
		{late, true, true},
		{&actors.LeftBehindError{Err: late}, false, false},
		{&actors.LeftBehindError{Err: late, Spans: true}, true, true},
		{&actors.LeftBehindError{Err: late, Device: true}, true, false},
		{&actors.LeftBehindError{Err: late, Reads: 1}, true, false},
	} {
		s := &Opened{device: struct{ gpu.Device }{}}
		err := s.modelClosed(c.err)
		if (err != nil) != c.fails || (s.device != nil) != c.closes {
			t.Errorf("%v: %v, device open to be closed: %t", c.err, err, s.device != nil)
		}
	}
}
