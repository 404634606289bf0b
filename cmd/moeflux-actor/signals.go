package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
)

// interrupts passes Ctrl-C to the part of the program that handles it.
type interrupts struct {
	mu      sync.Mutex
	handler func()
}

// catch makes Ctrl-C call handler, from another goroutine, instead of ending the program, until
// restore is called.
func (i *interrupts) catch(handler func()) (restore func()) {
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

// deliver reports whether a handler was there to call.
func (i *interrupts) deliver() bool {
	i.mu.Lock()
	handler := i.handler
	i.mu.Unlock()
	if handler == nil {
		return false
	}
	handler()
	return true
}

// signalled is the cause of a context that a signal ended.
type signalled struct{ os.Signal }

func (s signalled) Error() string        { return s.String() + " signal received" }
func (s signalled) Is(target error) bool { return target == context.Canceled }

// watchSignals ends the context at the first signal, except for interrupts that a handler catches.
// After that signals have their default effect: the second one kills.
func watchSignals(ctx context.Context, i *interrupts, signals chan os.Signal) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for s := range signals {
			if s == os.Interrupt && i.deliver() {
				continue
			}
			signal.Stop(signals)
			cancel(signalled{s})
			return
		}
	}()
	return ctx
}
