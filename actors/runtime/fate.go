package runtime

import (
	"sync"
	"sync/atomic"

	"github.com/moeflux/moeflux-actor/stages"
)

// fate is whether an engine still takes requests, and why not. An engine is closed by its user;
// it breaks by itself.
type fate struct {
	closed atomic.Bool   // nothing new is taken
	gone   chan struct{} // closed when closing is done

	breaking sync.Once
	broken   chan struct{} // closed when the engine has stopped by itself
	reason   error         // why; set before broken is closed
}

func newFate() fate { return fate{gone: make(chan struct{}), broken: make(chan struct{})} }

// Close refuses requests from now on.
func (r *Runtime) Close() { r.fate.closed.Store(true) }

// Closed reports whether Close was called.
func (r *Runtime) Closed() bool { return r.fate.closed.Load() }

// SetGone ends the waits of those whose answer will not come: closing is done.
func (r *Runtime) SetGone() { close(r.fate.gone) }

// Gone is closed when closing is done.
func (r *Runtime) Gone() <-chan struct{} { return r.fate.gone }

// Broken is closed when the engine has stopped by itself.
func (r *Runtime) Broken() <-chan struct{} { return r.fate.broken }

// Reason returns why the engine has stopped by itself. Broken must be closed.
func (r *Runtime) Reason() error { return r.fate.reason }

// Err returns why no request is taken, or nil.
func (r *Runtime) Err() error {
	if r.fate.closed.Load() {
		return stages.ErrClosed
	}
	select {
	case <-r.fate.broken:
		return r.fate.reason
	default:
	}
	if r.system.IsStopped() {
		r.systemStopped()
		return r.fate.reason
	}
	return nil
}

// breakDown records why the engine has stopped and wakes every caller.
func (r *Runtime) breakDown(err error) {
	r.fate.breaking.Do(func() {
		r.fate.reason = err
		r.log.Error("engine stopped", "error", err)
		close(r.fate.broken)
	})
}

// Break ends an engine a part of which, besides the stages, has found one of its invariants broken:
// every caller gets a *BrokenError. It may be called from any goroutine.
func (r *Runtime) Break(part string, err error) {
	r.breakDown(&BrokenError{Stage: part, Err: err})
}

// systemStopped ends an engine whose actor system was shut down. That stops no actor by itself.
func (r *Runtime) systemStopped() {
	r.breakDown(&StoppedError{})
	r.system.Root.Stop(r.top)
}
