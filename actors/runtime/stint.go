package runtime

import (
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/stages"
)

// stint is the sequencer's timer for stints in the memory for states. A new time replaces the one
// before.
type stint struct {
	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
	sending sync.WaitGroup
}

// begin sends StintOver to r's sequencer after a time.
func (t *stint) begin(after time.Duration, r *Runtime) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	t.end()
	t.sending.Add(1)
	t.timer = time.AfterFunc(after, func() {
		defer t.sending.Done()
		r.Send(stages.Sequencer, new(stages.StintOver))
	})
}

// end ends a time that is not over. t.mu is held.
func (t *stint) end() {
	if t.timer != nil && t.timer.Stop() {
		t.sending.Done()
	}
}

// stop returns when nothing is sent any more.
func (t *stint) stop() {
	t.mu.Lock()
	t.stopped = true
	t.end()
	t.mu.Unlock()
	t.sending.Wait()
}
