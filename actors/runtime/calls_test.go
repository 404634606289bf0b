package runtime

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moeflux/moeflux-actor/stages"
)

// TestReply shows that exactly one of the caller and late gets the answer, and that a caller whose
// ctx ends waits no longer, whether or not the answer ever comes.
func TestReply(t *testing.T) {
	const patience = time.Second
	for _, c := range []struct {
		name          string
		after         time.Duration // the answer comes, or 0: never
		cancelled     bool
		waited        time.Duration
		answers, late int
		want          error
	}{
		{"in time", patience / 2, false, patience / 2, 1, 0, nil},
		{"late", 2 * patience, false, patience, 0, 1, context.DeadlineExceeded},
		{"never", 0, false, patience, 0, 0, context.DeadlineExceeded},
		{"a ctx that has ended", patience, true, 0, 0, 1, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := &Runtime{fate: newFate()}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if c.cancelled {
					cancel()
				}
				r := NewReply()
				if c.after > 0 {
					time.AfterFunc(c.after, func() { r.deliver(new(stages.SequenceDone)) })
				}
				late, withdrawn := 0, false
				began := time.Now()
				a, err := rt.waitFor(ctx, r, func() { withdrawn = true }, func(stages.Message) { late++ })
				if withdrawn != (c.answers == 0) {
					t.Errorf("the request is withdrawn: %v", withdrawn)
				}
				if waited := time.Since(began); waited != c.waited || !errors.Is(err, c.want) || (a != nil) != (c.answers == 1) {
					t.Errorf("%v and %v after %v, want %v after %v", a, err, waited, c.want, c.waited)
				}
				time.Sleep(3 * patience)
				synctest.Wait()
				if late != c.late {
					t.Errorf("%d answers came late, want %d", late, c.late)
				}
			})
		})
	}
}
