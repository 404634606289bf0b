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

// bounded runs do, which may wait for files or for readers and writers of the caller's, in a
// goroutine of its own. do must end soon after ctx, or after wanted fails. If it hangs, bounded
// returns and leaves the goroutine to itself. A panic of do is the caller's.
func bounded[T any](ctx context.Context, e *Engine, do func() (T, error)) (T, error) {
	ended := make(chan outcome[T], 1)
	go func() {
		var o outcome[T]
		defer func() {
			o.panicked = recover()
			ended <- o
		}()
		o.value, o.err = do()
	}()
	gone := error(stages.ErrClosed)
	select {
	case o := <-ended:
		return o.get()
	case <-e.rt.Gone():
	case <-ctx.Done():
		gone = &UnfinishedError{Err: runtime.EndOf(ctx)}
	}
	late := time.NewTimer(endPatience)
	defer late.Stop()
	select {
	case o := <-ended:
		return o.get()
	case <-late.C:
		return *new(T), gone
	}
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
