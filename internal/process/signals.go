package process

import (
	"context"
	"os"
	"os/signal"
	"sync"
)

// Interrupts passes Ctrl-C to the part of the program that handles it.
type Interrupts struct {
	mu      sync.Mutex
	handler func()
}

// Catch makes Ctrl-C call handler, from another goroutine, instead of ending the program, until
// restore is called.
func (i *Interrupts) Catch(handler func()) (restore func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.handler
	i.handler = handler
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.handler = before
	}
}

// Deliver reports whether a handler was there to call.
func (i *Interrupts) Deliver() bool {
	i.mu.Lock()
	handler := i.handler
	i.mu.Unlock()
	if handler == nil {
		return false
	}
	handler()
	return true
}

// Signalled is the cause of a context that a signal ended.
type Signalled struct{ os.Signal }

func (s Signalled) Error() string        { return s.String() + " signal received" }
func (s Signalled) Is(target error) bool { return target == context.Canceled }

// WatchSignals ends the context at the first signal, except for interrupts that a handler catches.
// After that signals have their default effect: the second one kills.
func WatchSignals(ctx context.Context, i *Interrupts, signals chan os.Signal) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for s := range signals {
			if s == os.Interrupt && i.Deliver() {
				continue
			}
			signal.Stop(signals)
			cancel(Signalled{Signal: s})
			return
		}
	}()
	return ctx
}
