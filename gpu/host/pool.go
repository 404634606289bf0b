package host

import (
	"errors"
	"math/bits"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/topology"
	"github.com/moeflux/moeflux-actor/model/route"
)

// task is work that is divided into chunks. Chunks run concurrently in any order, each once. A
// chunk computes its part of the output alone, so the division does not affect the result.
type task interface {
	do(s *scratch, chunk int)
}

// scratch is one thread's memory, kept from operation to operation.
type scratch struct {
	a, b     []float32
	panels   panelScratch
	blocks   blockScratch
	chooser  route.Chooser
	next     ahead
	idle     aheadLines // none
	cache    gpu.KV     // of the sequence whose rows attend
	values   gpu.KV     // that next fetches
	upcoming []stretch  // what each thread reads in the job after the next one; nil: not known
}

// grow returns n floats kept in *f, whose contents are undefined. It doubles the capacity, because
// some lengths grow by one each token.
func grow[T any](f *[]T, n int) []T {
	if cap(*f) < n {
		*f = make([]T, max(n, 2*cap(*f)))
	}
	return (*f)[:n]
}

// pool runs one task at a time on its workers and the calling goroutine. Threads that work do not
// write to memory that others read, but for a flag each and the parts of the job. The job does not
// wait for a worker that comes late.
type pool struct {
	mu      sync.Mutex // held by the job
	task    task
	pause   *pause // of the job, or nil
	threads int    // of the job
	joining int    // of these, as many as the runtime has processors for
	parts   []part // of the job's chunks, one a thread, the caller's first
	failed  atomic.Pointer[chunkPanic]
	workers []*worker
	places  topology.Machine // where each thread is bound to a processor; nil: the system chooses
	ended   sync.WaitGroup
	quit    atomic.Bool
	caller  sleeper // of the job

	_       [lineBytes]byte
	turn    atomic.Uint32 // odd while workers may join the job
	waiting atomic.Bool   // the caller sleeps until no worker is inside
	wanted  atomic.Int32  // sleeping workers that the job still has to wake
	asleep  [(maxThreads + 63) / 64]atomic.Uint64
	_       [lineBytes]byte
}

// chunkPanic says what a chunk panicked with, and where.
type chunkPanic struct {
	value any
	stack []byte
}

// newPool starts n workers.
func newPool(n int) *pool {
	p := new(pool)
	p.grow(n)
	return p
}

// grow adds workers until there are n. Those that cannot be bound to their places run where the
// system puts them, and the error says so.
func (p *pool) grow(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.parts) <= n {
		p.parts = make([]part, n+1)
	}
	var all error
	for i := len(p.workers); i < n; i++ {
		w := &worker{id: i + 1}
		p.workers = append(p.workers, w)
		bound := make(chan error)
		p.ended.Go(func() {
			bound <- p.bind(w.id, n+1)
			p.serve(w)
		})
		all = errors.Join(all, <-bound)
	}
	return all
}

// bind binds the calling goroutine's thread, one of some, to its place. The thread ends with the
// goroutine.
func (p *pool) bind(thread, threads int) error {
	if p.places == nil {
		return nil
	}
	runtime.LockOSThread()
	return topology.Bind(p.places.Places(threads)[thread])
}

// close ends the workers. No job may be running.
func (p *pool) close() {
	p.quit.Store(true) // the turn stays: a worker that saw another one would wait for one after it
	for p.rouseOne() {
	}
	p.ended.Wait()
}

// run runs all chunks of t on up to threads threads and returns when they are done, or as soon as a
// pause is wanted that is not nil: then it leaves the rest to resume, and reports false. s belongs
// to the calling goroutine. If a chunk panics, run panics with a *chunkPanic after every thread has
// left the task.
func (p *pool) run(s *scratch, t task, chunks, threads int, pause *pause) (done bool) {
	p.mu.Lock()
	return p.begin(s, t, chunks, threads, pause)
}

// runSoon is run for a task that should not wait for another device's longer than it would take to
// run it alone, which is ns nanoseconds. Then it does so, in the calling goroutine.
func (p *pool) runSoon(s *scratch, t task, chunks, threads, ns int) {
	spent := max(0, spinFor-time.Duration(ns))
	if p.mu.TryLock() || spin(&spent, p.mu.TryLock) {
		p.begin(s, t, chunks, threads, nil)
		return
	}
	for i := range chunks {
		t.do(s, i)
	}
}

// begin divides the chunks among the threads and runs them. The caller holds p.mu.
func (p *pool) begin(s *scratch, t task, chunks, threads int, pause *pause) (done bool) {
	p.threads = threads
	for i := range threads {
		p.parts[i].set(i*chunks/threads, (i+1)*chunks/threads)
		p.parts[i].upcoming = stretch{}
		if i < len(s.upcoming) {
			p.parts[i].upcoming = s.upcoming[i]
		}
	}
	return p.job(s, t, chunks, pause)
}

// job runs the chunks in parts. The caller holds p.mu, which job releases.
func (p *pool) job(s *scratch, t task, chunks int, pause *pause) (done bool) {
	p.task, p.pause = t, pause
	p.joining = min(p.threads, runtime.GOMAXPROCS(0)) // it may have changed since the last job
	p.turn.Add(1)
	p.wake(min(p.joining, chunks) - 1)
	p.work(s, 0)
	p.turn.Add(1)
	p.settle()
	failed := p.failed.Load()
	if failed != nil {
		p.failed.Store(nil)
	}
	done = pause == nil || p.left(pause) == 0
	p.task, p.pause = nil, nil
	p.mu.Unlock()
	if failed != nil {
		panic(failed)
	}
	return done
}

// wake sees that n workers are awake.
func (p *pool) wake(n int) {
	sleeping := 0
	for i := range (len(p.workers) + 64) / 64 {
		sleeping += bits.OnesCount64(p.asleep[i].Load())
	}
	if sleeping == 0 {
		return
	}
	if n -= len(p.workers) - sleeping; n <= 0 {
		return
	}
	p.wanted.Store(int32(n))
	p.rouse(2)
}

// settle waits for the workers inside. The job must be closed.
func (p *pool) settle() {
	for _, w := range p.workers {
		if w.inside.Load() {
			p.settleOne(w)
		}
	}
}

func (p *pool) settleOne(w *worker) {
	left := func() bool { return !w.inside.Load() }
	var spent time.Duration
	for !spin(&spent, left) {
		p.waiting.Swap(true) // see serve
		if !left() {
			p.caller.sleep()
		}
		p.waiting.Store(false)
	}
}

// work runs chunks and reports whether there were any. It begins with part id, and then helps other
// threads.
func (p *pool) work(s *scratch, id int) (worked bool) {
	defer func() {
		if r := recover(); r != nil {
			p.failed.CompareAndSwap(nil, &chunkPanic{r, debug.Stack()})
			for i := range p.parts[:p.threads] {
				p.parts[i].set(0, 0)
			}
		}
	}()
	own := &p.parts[id]
	for i, ok := own.first(); ok; i, ok = own.first() {
		worked = true
		p.task.do(s, i)
		if p.paused() {
			return true
		}
	}
	for k := range helps(id, p.threads) {
		other := &p.parts[helped(id, k, p.threads)]
		for i, ok := other.last(); ok; i, ok = other.last() {
			worked = true
			p.task.do(s, i)
			if p.paused() {
				return true
			}
		}
	}
	return worked
}

// helps returns how many threads a thread helps. The first one, the job's caller, helps all: it
// must not leave before all chunks are taken. The others help those nearest, so that not all of
// them look at all parts.
func helps(id, threads int) int {
	if id == 0 {
		return threads - 1
	}
	return 2 * bits.Len(uint(threads-1))
}

// helped returns the k-th thread that a thread helps: the caller takes one after the other, workers
// those 1, 2, 4 and so on before and after.
func helped(id, k, threads int) int {
	if id == 0 {
		return k + 1
	}
	d := 1 << (k / 2)
	if k%2 == 1 {
		d = -d
	}
	return (id + d + threads) % threads
}
