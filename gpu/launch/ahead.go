package launch

import (
	"slices"
	"sync"
)

// Preparer is a LimbBackend that compiles kernels of its own before they are needed.
type Preparer interface {
	LimbBackend
	// Ahead is how many are compiled at once, in the background; 0: each when it is needed.
	Ahead() int
	// PrepareOwn compiles one, so that CompileOwn finds it. It may be called from several
	// goroutines, and beside CompileOwn.
	PrepareOwn(k Kernel) error
}

// ahead compiles kernels in the background, in the order in which they were asked for. With most 0
// it does nothing.
type ahead struct {
	prepare func(Kernel) error
	most    int

	mu      sync.Mutex
	kernels map[Kernel]*prepared
	queue   []Kernel // of them those that have not begun
	working int
	closed  bool
	workers sync.WaitGroup
}

// prepared is what became of a kernel that was asked for.
type prepared struct {
	begun bool
	ended chan struct{} // closed when done is told
	done  bool          // it is compiled
}

func newAhead(b Backend) *ahead {
	a := &ahead{kernels: map[Kernel]*prepared{}}
	if p, ok := b.(Preparer); ok && p.LimbProducts() {
		a.prepare, a.most = p.PrepareOwn, p.Ahead()
	}
	return a
}

// want has a kernel compiled, unless it was asked for before.
func (a *ahead) want(k Kernel) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.most == 0 || a.closed || a.kernels[k] != nil {
		return
	}
	a.kernels[k] = &prepared{ended: make(chan struct{})}
	a.queue = append(a.queue, k)
	if a.working < a.most {
		a.working++
		a.workers.Go(a.work)
	}
}

// work compiles until nothing is left.
func (a *ahead) work() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.queue) > 0 {
		k := a.queue[0]
		a.queue = a.queue[1:]
		p := a.kernels[k]
		p.begun = true
		a.mu.Unlock()
		err := a.prepare(k) // who needs this very kernel compiles it, and meets the error again
		a.mu.Lock()
		p.done = err == nil
		close(p.ended)
	}
	a.working--
}

// ready reports whether a kernel is compiled.
func (a *ahead) ready(k Kernel) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.kernels[k]
	return p != nil && p.done
}

// take is called by who needs a kernel and compiles it. If it is being compiled take waits for
// that; if it waits to be, nobody else will do it.
func (a *ahead) take(k Kernel) {
	a.mu.Lock()
	p := a.kernels[k]
	if p != nil && !p.begun {
		a.queue = slices.DeleteFunc(a.queue, func(q Kernel) bool { return q == k })
		p.begun = true
		close(p.ended)
	}
	a.mu.Unlock()
	if p != nil {
		<-p.ended
	}
}

// took tells that a kernel is compiled.
func (a *ahead) took(k Kernel) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.most == 0 {
		return
	}
	p := a.kernels[k]
	if p == nil {
		p = &prepared{begun: true, ended: make(chan struct{})}
		close(p.ended)
		a.kernels[k] = p
	}
	p.done = true
}

// close lets what is being compiled end, and begins nothing more.
func (a *ahead) close() {
	a.mu.Lock()
	a.closed, a.queue = true, nil
	a.mu.Unlock()
	a.workers.Wait()
}
