package host

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moeflux/moeflux-actor/model/route"
)

// task is work that is divided into chunks. Chunks run concurrently in any order, each once. A
// chunk computes its part of the output alone, so the division does not affect the result.
type task interface {
	do(s *scratch, chunk int)
}

// scratch is one thread's memory, kept from operation to operation.
type scratch struct {
	a, b    []float32
	panels  panelScratch
	chooser route.Chooser
	next    ahead
}

// grow returns n floats kept in *f, whose contents are undefined. It doubles the capacity, because
// some lengths grow by one each token.
func grow[T any](f *[]T, n int) []T {
	if cap(*f) < n {
		*f = make([]T, max(n, 2*cap(*f)))
	}
	return (*f)[:n]
}

// spinFor is how long an idle thread looks for work before it parks: longer than the stages take
// between two layers, and than the small operations between two large ones, so that no thread has
// to be woken within a token. It yields to other goroutines about every half microsecond. A device
// that stays idle uses no processor time.
const (
	spinFor   = 100 * time.Microsecond
	spinLoads = 500 // about half a microsecond
)

// spin waits a while for done and reports whether it became true.
func spin(done func() bool) bool {
	for began := time.Now(); ; {
		for range spinLoads {
			if done() {
				return true
			}
		}
		if time.Since(began) > spinFor {
			return false
		}
		runtime.Gosched()
	}
}

const (
	gateOpen    = 1 << 32 // workers may join the job
	gateWaiting = 1 << 33 // the job's caller is parked until the last worker has left
)

// pool runs one task at a time on its workers and the calling goroutine. It does not wait for a
// worker that comes late and finds the gate closed.
type pool struct {
	mu      sync.Mutex // held by the job
	task    task
	pause   *pause       // of the job, or nil
	parts   []part       // of the job's chunks, one a thread, the caller's first
	gate    atomic.Int64 // workers inside, and the flags above
	epoch   atomic.Uint64
	failed  atomic.Pointer[chunkPanic]
	empty   chan struct{} // the last worker has left
	quit    atomic.Bool
	workers []*worker
	ended   sync.WaitGroup
}

// part is the chunks from low to before high: low is the lower half of the word, high the upper.
// The thread that owns the part takes chunks from the front, so that it walks through memory in
// order; threads that have nothing left take them from the back. A part has a cache line to itself.
type part struct {
	span atomic.Uint64
	_    [56]byte
}

func (p *part) set(low, high int) { p.span.Store(uint64(high)<<32 | uint64(low)) }

// first takes the first chunk.
func (p *part) first() (int, bool) {
	for {
		span := p.span.Load()
		low, high := uint32(span), uint32(span>>32)
		if low >= high {
			return 0, false
		}
		if p.span.CompareAndSwap(span, span+1) {
			return int(low), true
		}
	}
}

// last takes the last chunk.
func (p *part) last() (int, bool) {
	for {
		span := p.span.Load()
		low, high := uint32(span), uint32(span>>32)
		if low >= high {
			return 0, false
		}
		if p.span.CompareAndSwap(span, span-1<<32) {
			return int(high - 1), true
		}
	}
}

type worker struct {
	id      int // of its part
	scratch scratch
	parked  atomic.Bool
	wake    chan struct{}
}

// chunkPanic says what a chunk panicked with, and where.
type chunkPanic struct {
	value any
	stack []byte
}

// newPool starts n workers.
func newPool(n int) *pool {
	p := &pool{empty: make(chan struct{}, 1), parts: make([]part, n+1)}
	for i := range n {
		p.workers = append(p.workers, &worker{id: i + 1, wake: make(chan struct{}, 1)})
	}
	for _, w := range p.workers {
		p.ended.Go(func() { p.serve(w) })
	}
	return p
}

// close ends the workers. No job may be running.
func (p *pool) close() {
	p.quit.Store(true)
	p.signal(len(p.workers))
	p.ended.Wait()
}

// run runs all chunks of t and returns when they are done, or as soon as a pause is wanted that is
// not nil: then it leaves the rest to resume, and reports false. s belongs to the calling
// goroutine. If a chunk panics, run panics with a *chunkPanic after every thread has left the task.
func (p *pool) run(s *scratch, t task, chunks int, pause *pause) (done bool) {
	p.mu.Lock()
	n := len(p.parts)
	for i := range p.parts {
		p.parts[i].set(i*chunks/n, (i+1)*chunks/n)
	}
	return p.job(s, t, chunks, pause)
}

// job runs the chunks in parts. The caller holds p.mu, which job releases.
func (p *pool) job(s *scratch, t task, chunks int, pause *pause) (done bool) {
	p.task, p.pause = t, pause
	p.failed.Store(nil)
	p.gate.Store(gateOpen)
	p.signal(min(len(p.workers), chunks-1))
	p.work(s, 0)
	p.shut()
	failed := p.failed.Load()
	done = pause == nil || p.left(pause) == 0
	p.task, p.pause = nil, nil
	p.mu.Unlock()
	if failed != nil {
		panic(failed)
	}
	return done
}

// signal tells the workers of a new epoch and wakes up to n that are parked.
func (p *pool) signal(n int) {
	p.epoch.Add(1)
	for _, w := range p.workers {
		if n == 0 {
			return
		}
		if w.parked.Load() && w.parked.CompareAndSwap(true, false) {
			w.wake <- struct{}{} // has room: one is sent each time it parks
		}
		n--
	}
}

// shut closes the gate and waits for the workers inside.
func (p *pool) shut() {
	p.gate.And(^gateOpen)
	if spin(func() bool { return p.gate.Load() == 0 }) {
		return
	}
	for {
		in := p.gate.Load()
		if in == 0 {
			return
		}
		if p.gate.CompareAndSwap(in, in|gateWaiting) {
			<-p.empty
			p.gate.Store(0)
			return
		}
	}
}

// join enters the job if it still takes workers.
func (p *pool) join() bool {
	for {
		in := p.gate.Load()
		if in&gateOpen == 0 {
			return false
		}
		if p.gate.CompareAndSwap(in, in+1) {
			return true
		}
	}
}

func (p *pool) leave() {
	if p.gate.Add(-1) == gateWaiting {
		p.empty <- struct{}{}
	}
}

// work runs chunks until none is left. It begins with part id.
func (p *pool) work(s *scratch, id int) {
	defer func() {
		if r := recover(); r != nil {
			p.failed.CompareAndSwap(nil, &chunkPanic{r, debug.Stack()})
			for i := range p.parts {
				p.parts[i].set(0, 0)
			}
		}
	}()
	for i, ok := p.parts[id].first(); ok; i, ok = p.parts[id].first() {
		p.task.do(s, i)
		if p.paused() {
			return
		}
	}
	for k := 1; k < len(p.parts); k++ {
		other := &p.parts[(id+k)%len(p.parts)]
		for i, ok := other.last(); ok; i, ok = other.last() {
			p.task.do(s, i)
			if p.paused() {
				return
			}
		}
	}
}

func (p *pool) serve(w *worker) {
	debug.SetPanicOnFault(true) // weights may be a mapped file that lost its end
	seen := uint64(0)
	for {
		seen = p.await(w, seen)
		if p.quit.Load() {
			return
		}
		if p.join() {
			p.work(&w.scratch, w.id)
			p.leave()
		}
	}
}

// await waits until the epoch differs from seen, and returns it.
func (p *pool) await(w *worker, seen uint64) uint64 {
	if spin(func() bool { return p.epoch.Load() != seen }) {
		return p.epoch.Load()
	}
	w.parked.Store(true)
	if e := p.epoch.Load(); e != seen && w.parked.CompareAndSwap(true, false) {
		return e
	}
	<-w.wake
	return p.epoch.Load()
}
