package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/forecast"
)

// MaxWaiting is the actors.Config.MaxWaiting of engines that are measured: no text may wait for
// memory. All prompts are read before the first text goes on, so nobody would give any back.
const MaxWaiting = -1

// Model is an open model that is measured.
type Model struct {
	Config      actors.Config // that it was opened with
	Engine      *actors.Engine
	MemoryLimit int64 // of the cgroup, in bytes; 0 for none

	// Span begins a trace, which end ends.
	Span func(ctx context.Context, name string) (_ context.Context, end func())
	// Close closes the engine and what it stands on. Who opened the model calls it: Mix and Sweep
	// close the models that they open.
	Close func() error
}

// Host is the process that measures.
type Host struct {
	Now        func() time.Time
	Memory     func() (int64, error) // bytes that this process may use
	FreeMemory func() (int64, error) // of Memory
	// Progress is told how far the measurement is, by one goroutine at a time. nil means nobody
	// wants to know.
	Progress func(what string, done, total int64)
	// Note is told what the user should know.
	Note func(format string, args ...any)
}

func (h *Host) progress(what string, done, total int64) {
	if h.Progress != nil {
		h.Progress(what, done, total)
	}
}

// Bandwidth returns the memory's bandwidth, to be measured with the device's threads; nil for a
// GPU, which has memory of its own, and if there is too little free memory to exceed the caches.
func (h *Host) Bandwidth(threads int) (*forecast.Memory, error) {
	free, err := h.FreeMemory()
	if err != nil {
		return nil, fmt.Errorf("the amount of free memory is unknown: %w", err)
	}
	return forecast.NewMemory(threads, free, h.Note), nil
}

// BandwidthFirst measures memory before a model is opened, if its expert slots will take all that
// is free; else it returns nil.
func (h *Host) BandwidthFirst(ctx context.Context, plan *actors.Info) (*forecast.Memory, error) {
	if plan.ExpertIO == actors.ExpertIOMmap {
		return nil, nil
	}
	m, err := h.Bandwidth(plan.Threads)
	if err != nil || m == nil {
		return nil, err
	}
	m.First = true
	return m, m.MeasureBefore(ctx)
}

// Options say which texts are measured.
type Options struct {
	PromptTokens []int // of one text
	// GenTokens are decoded after each prompt. 0 means what suits the measurement and the context.
	GenTokens int
	Sequences []int // texts at once
	Warmup    int   // tokens that each text decodes before; fewer if the context is short
	Repeat    int
	Cold      bool // one run from empty expert slots
	Forget    bool // expert slots are emptied before every run
}

// TooLongError reports texts that are longer than a sequence may be.
type TooLongError struct{ PromptTokens, GenTokens, Context int }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("bench: prompts of %d tokens and %d decoded ones are too many: a sequence has %d positions", e.PromptTokens, e.GenTokens, e.Context)
}

// fit sets the default of GenTokens, and returns how many tokens the warm-up reads and decodes.
func (o *Options) fit(i *actors.Info, gen int) (prompt, decoded int, err error) {
	longest := slices.Max(o.PromptTokens)
	if o.GenTokens == 0 {
		o.GenTokens = gen
	}
	if longest+o.GenTokens > i.Context {
		return 0, 0, &TooLongError{longest, o.GenTokens, i.Context}
	}
	prompt = min(slices.Min(o.PromptTokens), i.ChunkRows)
	return prompt, min(o.Warmup, i.Context-prompt), nil
}

// stopped reports whether err says that the caller ended the measurement.
func stopped(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}

// together runs f(0) to f(n-1) at once and waits for all. It returns the first error, which also
// ends the context of the others.
func together(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := f(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
