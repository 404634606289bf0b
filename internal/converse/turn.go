package converse

import (
	"context"
	"sync/atomic"
)

// Turn is what Ctrl-C sees of the answer under way.
type Turn struct {
	running atomic.Bool
	asked   atomic.Int32 // how often the person asked for an end
	cancel  atomic.Pointer[context.CancelFunc]
}

// Begin notes that an answer is under way; cancel ends it at once.
func (t *Turn) Begin(cancel context.CancelFunc) {
	t.asked.Store(0)
	t.cancel.Store(&cancel)
	t.running.Store(true)
}

// Interrupt ends the answer under way, if there is one: the first time between two tokens, where
// the conversation can go on from, the second time at once.
func (t *Turn) Interrupt() bool {
	if !t.running.Load() {
		return false
	}
	if t.asked.Add(1) > 1 {
		(*t.cancel.Load())()
	}
	return true
}

// Halted reports whether the person asked for an end.
func (t *Turn) Halted() bool { return t.asked.Load() > 0 }

// End notes that the answer has ended.
func (t *Turn) End() { t.running.Store(false) }
