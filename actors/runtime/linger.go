package runtime

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/moeflux/moeflux-actor/stages"
)

// linger is the sequencer's one timer.
// A new round replaces the one before, whose end no longer matters. A round allocates nothing. If
// a timer fires while a new round begins, the new one ends early, which the sequencer allows at any
// time.
type linger struct {
	timer   atomic.Pointer[time.Timer] // made for the first round
	due     atomic.Pointer[stages.LingerOver]
	running sync.WaitGroup // rounds whose time is not over
}

// begin sends m to r's sequencer after some time. It returns the message of an earlier round
// that will not be sent, or nil. Only the line calls it.
func (l *linger) begin(m *stages.LingerOver, wait time.Duration, r *Runtime) (unsent *stages.LingerOver) {
	unsent = l.due.Swap(m)
	l.running.Add(1)
	if t := l.timer.Load(); t == nil {
		l.timer.Store(time.AfterFunc(wait, func() {
			defer l.running.Done()
			if m := l.due.Swap(nil); m != nil {
				r.Send(stages.Sequencer, m)
			}
		}))
	} else if t.Reset(wait) {
		l.running.Done() // the round before was not over: one end for both
	}
	return unsent
}

// stop returns when no round is running any more. Nobody begins one then.
func (l *linger) stop() {
	if t := l.timer.Load(); t != nil && t.Stop() {
		l.running.Done()
	}
	l.running.Wait()
}
