package process

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
)

func TestSignals(t *testing.T) {
	for _, c := range []struct {
		name    string
		signals []os.Signal
		caught  int
		cause   os.Signal // nil for none
	}{
		{"interrupts are caught", []os.Signal{os.Interrupt, os.Interrupt}, 2, nil},
		{"termination is not", []os.Signal{os.Interrupt, syscall.SIGTERM}, 1, syscall.SIGTERM},
	} {
		t.Run(c.name, func(t *testing.T) {
			i, signals, caught := &Interrupts{}, make(chan os.Signal), make(chan struct{}, 9)
			ctx := WatchSignals(t.Context(), i, signals)
			restore := i.Catch(func() { caught <- struct{}{} })
			for _, s := range c.signals {
				signals <- s
			}
			for range c.caught {
				<-caught
			}
			if c.cause == nil {
				restore()
				if ctx.Err() != nil {
					t.Errorf("the context ended: %v", context.Cause(ctx))
				}
				c.cause = os.Interrupt
				signals <- os.Interrupt // nobody catches it any more
			}
			<-ctx.Done()
			if cause, ok := errors.AsType[Signalled](context.Cause(ctx)); !ok || cause.Signal != c.cause || !errors.Is(cause, context.Canceled) {
				t.Errorf("cause %v, want %v", context.Cause(ctx), c.cause)
			}
		})
	}
}

// Handlers nest.
func TestInterrupts(t *testing.T) {
	i, got := &Interrupts{}, ""
	outer := i.Catch(func() { got += "outer " })
	inner := i.Catch(func() { got += "inner " })
	i.Deliver()
	inner()
	i.Deliver()
	outer()
	if i.Deliver() || got != "inner outer " {
		t.Errorf("handlers were called %q", got)
	}
}
