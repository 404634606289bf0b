package actors

import (
	"context"
	"time"

	"github.com/moeflux/moeflux-actor/actors/runtime"
	"github.com/moeflux/moeflux-actor/stages"
)

// endPatience is how long a call waits, after its context has ended, for what it has given up to
// end in good order. Most steps of a decoded token end within that time, and so does whatever does
// not hang.
const endPatience = 50 * time.Millisecond

// wanted reports, as an error, that a state need not be read or filled any more: the caller has
// gone, or the engine has.
func (e *Engine) wanted(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return runtime.EndOf(ctx)
	case <-e.rt.Broken():
		return e.rt.Reason()
	case <-e.end.cancelled:
		return stages.ErrClosed
	default:
		return nil
	}
}

// bounded is within, for a call of an engine: it ends with the engine too, and do must end soon
// after wanted fails.
func bounded[T any](ctx context.Context, e *Engine, do func() (T, error)) (T, error) {
	return within(ctx, e.rt.Gone(), do, nil)
}

// within runs do, which may wait for files, for a device, or for readers and writers of the
// caller's, in a goroutine of its own. do should end soon after ctx. If it hangs, within returns
// and leaves the goroutine to itself; late, unless it is nil, gets the outcome then, and the
// error's Ended is closed after it. A panic of do is the caller's.
func within[T any](ctx context.Context, gone <-chan struct{}, do func() (T, error), late func(outcome[T])) (T, error) {
	ended := make(chan outcome[T], 1)
	go func() {
		var o outcome[T]
		defer func() {
			o.panicked = recover()
			ended <- o
		}()
		o.value, o.err = do()
	}()
	over := make(chan struct{})
	var why error = stages.ErrClosed
	select {
	case o := <-ended:
		return o.get()
	case <-gone:
	case <-ctx.Done():
		why = &UnfinishedError{Err: runtime.EndOf(ctx), Ended: over}
	}
	patience := time.NewTimer(endPatience)
	defer patience.Stop()
	select {
	case o := <-ended:
		return o.get()
	case <-patience.C:
	}
	go func() {
		defer close(over)
		if o := <-ended; late != nil {
			late(o)
		}
	}()
	return *new(T), why
}

// outcome is how a function has ended.
type outcome[T any] struct {
	value    T
	err      error
	panicked any
}

func (o outcome[T]) get() (T, error) {
	if o.panicked != nil {
		panic(o.panicked)
	}
	return o.value, o.err
}
