package readpool

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// DefaultWorkers is the number of workers of a pool that was asked for none.
const DefaultWorkers = 8

// ErrClosed is the error of every read that had not begun when its pool was closed.
var ErrClosed = errors.New("readpool: closed")

// Source fills dst with the record of one expert, all or nothing. It is called from several goroutines at once.
type Source interface {
	ReadExpert(layer, expert int, dst []byte) error
}

// Request asks for one expert's record. Dst belongs to the pool until its group's callback.
type Request struct {
	Layer, Expert int
	Dst           []byte
}

// PanicError reports a Source that panicked. Dst is undefined then.
type PanicError struct {
	Layer, Expert int
	Value         any    // what was panicked with
	Stack         []byte // of the worker, for the log
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("readpool: reading layer %d expert %d panicked: %v", e.Layer, e.Expert, e.Value)
}

// Unwrap returns the value of the panic where that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Stats is what a pool counted since New.
type Stats struct {
	Reads       int64         // ended, with or without an error
	Speculative int64         // those of Reads that were asked for on a guess
	Bytes       int64         // of reads without an error
	Errors      int64         // reads that failed or panicked
	Unread      int64         // requests that ended with ErrClosed
	Time        time.Duration // spent in the Source, summed over workers
	Queued      int           // requests not begun now
	Running     int           // requests being read now
}

// Pool runs reads. All methods may be called from any goroutine.
type Pool struct {
	src  Source
	wake sync.Cond // something was queued, or the pool was closed
	wg   sync.WaitGroup

	mu     sync.Mutex // guards the rest
	queue  [2]fifo    // demand, speculation
	idle   int        // workers that wait on wake
	closed bool
	stats  Stats
}

// group is one Submit.
type group struct {
	reqs        []Request
	errs        []error // [len(reqs)]
	done        func([]error)
	next        *group // in its queue
	begun       int    // requests handed to a worker
	left        int    // requests not ended
	speculative bool
}

// fifo is a list of groups in order of Submit, the first of which may have begun.
type fifo struct{ head, tail *group }

func (q *fifo) push(g *group) {
	if q.head == nil {
		q.head = g
	} else {
		q.tail.next = g
	}
	q.tail = g
}

func (q *fifo) pop() {
	g := q.head
	q.head, g.next = g.next, nil
	if q.head == nil {
		q.tail = nil
	}
}

// New starts a pool of workers that read from src; 0 or fewer mean DefaultWorkers. One worker reads one request
// at a time, so workers is also the depth of the queue that the disk sees: too few leave it idle, too many only make every
// read wait longer. The pool must be closed.
func New(src Source, workers int) *Pool {
	if workers <= 0 {
		workers = DefaultWorkers
	}
	p := &Pool{src: src}
	p.wake.L = &p.mu
	p.wg.Add(workers)
	for range workers {
		go p.work()
	}
	return p
}

// Submit queues a group of reads and returns at once. Groups begin in order of Submit, groups that are not speculative
// before those that are, even before the rest of a speculative group that has begun; the reads of one
// group run in parallel as far as there are workers.
//
// reqs passes to the pool until done. done is called once, when all of the group have ended; errs is [len(reqs)],
// errs[i] belongs to reqs[i] and nil means that its Dst is filled. errs passes to done. done runs on a worker, so
// it must be short and must not close the pool. On a closed pool, Submit itself calls done, with ErrClosed for every read.
func (p *Pool) Submit(reqs []Request, speculative bool, done func(errs []error)) {
	g := &group{reqs: reqs, errs: make([]error, len(reqs)), done: done, left: len(reqs), speculative: speculative}
	p.mu.Lock()
	if p.closed {
		p.abandon(g)
		p.mu.Unlock()
		done(g.errs)
		return
	}
	p.stats.Queued += len(reqs)
	p.queue[g.class()].push(g)
	for range min(max(1, len(reqs)), p.idle) {
		p.wake.Signal()
	}
	p.mu.Unlock()
}

// Close ends the pool: running reads are waited for, queued ones end with ErrClosed, and when Close returns every done
// has been called and no worker is left. A second Close waits as the first does. It must not be called from a done.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.wake.Broadcast()
	p.mu.Unlock()
	p.wg.Wait()
}

// Stats returns the figures of this moment.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

func (g *group) class() int {
	if g.speculative {
		return 1
	}
	return 0
}

// work is one worker: it takes requests until the pool is closed and the queue empty.
func (p *Pool) work() {
	defer p.wg.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		g, i, ok := p.take()
		if !ok {
			return
		}
		if i >= 0 {
			p.mu.Unlock()
			began := time.Now()
			err := p.read(&g.reqs[i])
			took := time.Since(began)
			p.mu.Lock()
			p.ended(g, i, err, took)
		}
		if g.left == 0 { // this worker ended the group, no other will see 0
			p.mu.Unlock()
			g.done(g.errs)
			p.mu.Lock()
		}
	}
}

// take returns the next request to read, waiting for one; i is -1 for a group of which nothing is to be read any more. It
// reports false when the pool is closed and nothing is queued. p.mu is held.
func (p *Pool) take() (g *group, i int, ok bool) {
	for {
		q := &p.queue[0]
		if q.head == nil {
			q = &p.queue[1]
		}
		g := q.head
		switch {
		case g == nil && p.closed:
			return nil, 0, false
		case g == nil:
			p.idle++
			p.wake.Wait()
			p.idle--
		case p.closed || len(g.reqs) == 0:
			q.pop()
			p.stats.Queued -= p.abandon(g)
			return g, -1, true
		default:
			i := g.begun
			g.begun++
			if g.begun == len(g.reqs) {
				q.pop()
			}
			p.stats.Queued--
			p.stats.Running++
			return g, i, true
		}
	}
}

// abandon ends the requests of g that have not begun and returns how many they were. p.mu is held.
func (p *Pool) abandon(g *group) int {
	rest := len(g.reqs) - g.begun
	for i := g.begun; i < len(g.reqs); i++ {
		g.errs[i] = ErrClosed
	}
	g.begun = len(g.reqs)
	g.left -= rest
	p.stats.Unread += int64(rest)
	return rest
}

// ended books the end of request i of g. p.mu is held.
func (p *Pool) ended(g *group, i int, err error, took time.Duration) {
	g.errs[i] = err
	g.left--
	p.stats.Running--
	p.stats.Reads++
	p.stats.Time += took
	if g.speculative {
		p.stats.Speculative++
	}
	if err != nil {
		p.stats.Errors++
	} else {
		p.stats.Bytes += int64(len(g.reqs[i].Dst))
	}
}

// read calls the Source and turns a panic into an error.
func (p *Pool) read(r *Request) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Layer: r.Layer, Expert: r.Expert, Value: v, Stack: debug.Stack()}
		}
	}()
	return p.src.ReadExpert(r.Layer, r.Expert, r.Dst)
}
