package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/models"
)

// Options say what a fleet has. Entries and Memory must be set.
type Options struct {
	Entries []Entry
	// Memory is the budget of all models together, in bytes, of the memory where their experts are.
	Memory int64
	// UnloadAfter is how long a model may be unused before it is unloaded; 0 means for ever, as
	// long as no other wants its memory.
	UnloadAfter time.Duration
	// Logger is told what is loaded and unloaded. nil means none.
	Logger *slog.Logger
}

// resizeTime is how long an engine may take to answer that it has noted another number of slots.
const resizeTime = 5 * time.Second

// Fleet loads and unloads models as requests want them. Its methods may be called from many
// goroutines.
type Fleet struct {
	entries []Entry
	log     *slog.Logger
	began   time.Time
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	woken   chan struct{} // has one when there is something to carry out
	running sync.WaitGroup

	mu      sync.Mutex
	core    *Core
	models  []place
	pending []Command
	closed  bool
}

// place is what the fleet has of a model.
type place struct {
	in      Loaded // nil while it is away
	waiting []*waiter
}

// waiter is a request that waits for a model. Ready is closed once one of the other two is set.
type waiter struct {
	ready chan struct{}
	in    Loaded
	err   error
}

// New returns a fleet whose pinned models begin to load. The caller closes it. The error says what
// can never fit in the budget.
func New(o Options) (*Fleet, error) {
	f := &Fleet{entries: slices.Clone(o.Entries), log: o.Logger, began: time.Now(), woken: make(chan struct{}, 1), models: make([]place, len(o.Entries))}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	specs := make([]Spec, len(o.Entries))
	for i := range specs {
		specs[i] = o.Entries[i].Spec
	}
	var err error
	if f.core, err = NewCore(o.Memory, o.UnloadAfter, specs); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.act(f.core.Tick(f.now()))
	f.running.Go(f.run)
	return f, nil
}

// Models returns the models, in the order of the entries.
func (f *Fleet) Models() []*Model {
	all := make([]*Model, len(f.entries))
	for i := range all {
		all[i] = &Model{fleet: f, index: i}
	}
	return all
}

func (f *Fleet) now() time.Duration { return time.Since(f.began) }

// acquire returns a model once it is in memory.
func (f *Fleet) acquire(ctx context.Context, i int) (models.Model, func(), error) {
	w := &waiter{ready: make(chan struct{})}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil, nil, moeflux.ErrClosed
	}
	f.models[i].waiting = append(f.models[i].waiting, w)
	f.act(f.core.Want(f.now(), i))
	f.mu.Unlock()
	select {
	case <-w.ready:
	case <-ctx.Done():
		if f.gaveUp(i, w) {
			return nil, nil, context.Cause(ctx)
		}
	}
	if w.err != nil {
		return nil, nil, w.err
	}
	return w.in, sync.OnceFunc(func() { f.left(i) }), nil
}

// gaveUp takes a waiter out of the line. It reports false if it is not there any more.
func (f *Fleet) gaveUp(i int, w *waiter) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.Index(f.models[i].waiting, w)
	if at < 0 {
		return false
	}
	f.models[i].waiting = slices.Delete(f.models[i].waiting, at, at+1)
	f.act(f.core.GaveUp(f.now(), i))
	return true
}

func (f *Fleet) left(i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.act(f.core.Left(f.now(), i))
	}
}

// act lets in whom the commands admit, and leaves the others to run. The caller holds the lock.
func (f *Fleet) act(all []Command) {
	for _, k := range all {
		if k.Kind != Admit {
			f.pending = append(f.pending, k)
			continue
		}
		p := &f.models[k.Model]
		for _, w := range p.waiting[:k.N] {
			w.in = p.in
			close(w.ready)
		}
		p.waiting = p.waiting[k.N:]
	}
	select {
	case f.woken <- struct{}{}:
	default: // it is awake already
	}
}

// run carries commands out, in their order, until the fleet is closed.
func (f *Fleet) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		f.mu.Lock()
		todo := f.pending
		f.pending = nil
		at, due := f.core.Wake()
		f.mu.Unlock()
		for _, k := range todo {
			f.carryOut(k)
		}
		if timer.Stop(); due {
			timer.Reset(max(0, at-f.now()))
		}
		select {
		case <-f.ctx.Done():
			return
		case <-f.woken:
		case <-timer.C:
			f.mu.Lock()
			f.act(f.core.Tick(f.now()))
			f.mu.Unlock()
		}
	}
}

func (f *Fleet) carryOut(k Command) {
	switch k.Kind {
	case Load:
		f.running.Go(func() { f.load(k.Model, k.Bytes) })
	case Unload:
		f.running.Go(func() { f.unload(k.Model) })
	case Share:
		f.share(k.Model, f.loaded(k.Model), k.Bytes)
	}
}

// load brings a model into memory and lets in who waits for it.
func (f *Fleet) load(i int, expertBytes int64) {
	e, began := &f.entries[i], time.Now()
	in, err := e.Open(f.ctx)
	if err == nil {
		f.share(i, in, expertBytes)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil:
		f.log.Error("a model cannot be loaded", "model", e.Name, "error", err)
		f.refuse(i, &models.LoadError{Model: e.Name, Err: err})
		if !f.closed {
			f.act(f.core.Failed(f.now(), i))
		}
		return
	case f.closed:
		f.models[i].in = in // Close ends it
		return
	}
	took := time.Since(began)
	f.log.Info("a model is loaded", "model", e.Name, "ms", took.Milliseconds(), "expert_bytes", expertBytes, "waiting", len(f.models[i].waiting))
	f.models[i].in, e.Info = in, in.Info()
	f.act(f.core.Loaded(f.now(), i, took))
}

// refuse tells all who wait for a model that it does not come.
func (f *Fleet) refuse(i int, err error) {
	for _, w := range f.models[i].waiting {
		w.err = err
		close(w.ready)
	}
	f.models[i].waiting = nil
}

// share gives a model a share of the memory for expert slots.
func (f *Fleet) share(i int, in Loaded, bytes int64) {
	if bytes == 0 || in == nil {
		return // its experts have no slots
	}
	ctx, cancel := context.WithTimeout(f.ctx, resizeTime)
	defer cancel()
	if _, err := in.ResizeExperts(ctx, bytes); err != nil && f.ctx.Err() == nil {
		f.log.Warn("the expert slots of a model stay as they are", "model", f.entries[i].Name, "error", err)
	}
}

// unload ends a model that nobody uses.
func (f *Fleet) unload(i int) {
	f.mu.Lock()
	in := f.models[i].in
	f.models[i].in = nil
	f.mu.Unlock()
	began := time.Now()
	if err := in.Close(f.ctx); err != nil {
		f.log.Error("a model did not end well", "model", f.entries[i].Name, "error", err)
	}
	f.log.Info("a model is unloaded", "model", f.entries[i].Name, "ms", time.Since(began).Milliseconds())
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.act(f.core.Gone(f.now(), i))
	}
}

// loaded returns a model that is in memory; nil for one that is not.
func (f *Fleet) loaded(i int) Loaded {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.models[i].in
}

func (f *Fleet) status(i int) models.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.core.models[i].phase {
	case here:
		return models.Loaded
	case loading:
		return models.Loading
	}
	return models.Unloaded
}

// Close refuses new requests, waits for loading that is under way, and ends all models: those with
// users as their Close does when ctx ends. A closed fleet may be closed again.
func (f *Fleet) Close(ctx context.Context) error {
	f.mu.Lock()
	f.closed = true
	for i := range f.models {
		f.refuse(i, moeflux.ErrClosed)
	}
	f.mu.Unlock()
	f.cancel()
	f.running.Wait()
	errs := make([]error, len(f.models))
	var closing sync.WaitGroup
	for i := range f.models {
		if in := f.models[i].in; in != nil {
			f.models[i].in = nil
			closing.Go(func() { errs[i] = in.Close(ctx) })
		}
	}
	closing.Wait()
	return errors.Join(errs...)
}
