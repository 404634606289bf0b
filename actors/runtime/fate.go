package runtime

import (
	"sync"
	"sync/atomic"
)

// fate is whether an engine still takes requests, and why not. An engine is closed by its user;
// it breaks by itself.
type fate struct {
	closed atomic.Bool   // nothing new is taken
	door   sync.RWMutex  // read-locked by callers within the engine, locked for good when it ends
	leave  sync.Once     // closes gone
	gone   chan struct{} // closed when nobody gets an answer any more

	breaking sync.Once
	broken   chan struct{} // closed when the engine has stopped by itself
	reason   error         // why; set before broken is closed
}

func newFate() fate { return fate{gone: make(chan struct{}), broken: make(chan struct{})} }

// Close refuses requests from now on.
func (r *Runtime) Close() { r.fate.closed.Store(true) }

// Closed reports whether Close was called.
func (r *Runtime) Closed() bool { return r.fate.closed.Load() }

// SetGone ends the waits of those whose answer will not come. It reports whether it is the first
// to do so.
func (r *Runtime) SetGone() (first bool) {
	r.fate.leave.Do(func() {
		close(r.fate.gone)
		first = true
	})
	return first
}

// Gone is closed when nobody gets an answer any more.
func (r *Runtime) Gone() <-chan struct{} { return r.fate.gone }

// Enter lets a caller send messages and touch memory of the engine until it calls Exit, unless the
// engine has ended.
func (r *Runtime) Enter() bool { return r.fate.door.TryRLock() } // only Shut locks it

// Exit ends what Enter began.
func (r *Runtime) Exit() { r.fate.door.RUnlock() }

// Shut lets nobody enter any more, and returns when everybody has left.
func (r *Runtime) Shut() { r.fate.door.Lock() }

// Broken is closed when the engine has stopped by itself.
func (r *Runtime) Broken() <-chan struct{} { return r.fate.broken }

// Reason returns why the engine has stopped by itself. Broken must be closed.
func (r *Runtime) Reason() error { return r.fate.reason }

// Err returns why the engine has stopped by itself, or nil.
func (r *Runtime) Err() error {
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
