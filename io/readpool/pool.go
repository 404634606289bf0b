package readpool

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// DefaultWorkers is the number of workers where Config does not say.
const DefaultWorkers = 8

// DefaultTimeout is how long a read may take before it is reported, where Config does not say.
const DefaultTimeout = 30 * time.Second

// ErrClosed is the error of every read that had not begun when its pool was closed.
var ErrClosed = errors.New("readpool: closed")

// ErrRecalled is the error of a read that was recalled before it had begun.
var ErrRecalled = errors.New("readpool: recalled")

// Config sizes a pool. The zero value is ready for use.
type Config struct {
	// Workers is how many requests are read at once, and so the depth of the queue that the disk
	// sees. Too few leave the disk idle; too many only make every read wait longer. 0 means
	// DefaultWorkers.
	Workers int
	// Fewer lets fewer than Workers read at once where the disk is faster then. The pool finds out
	// while it reads, and goes on to look whether that is still so.
	Fewer bool
	// Speculative is how many reads may be running once a speculative one has begun. Demand reads
	// cannot overtake what is in the queues of kernel and disk already. 0 means 2, or Workers if
	// that is less.
	Speculative int
	// Timeout is how long a request may be read, or wait for a worker, before Overdue is called. It
	// is called again after each further Timeout. 0 means DefaultTimeout.
	Timeout time.Duration
	// Overdue, if set, is called for requests that are late. Their Dst stays with the pool until
	// they end, which may be never. A request may end, and its group's callback run, just before
	// Overdue is called. It must be short and must not close the pool.
	Overdue func(r Request, err *TimeoutError)
}

// Source fills dst with the record of one expert, all or nothing. Several goroutines call it at
// once.
type Source interface {
	ReadExpert(layer, expert int, dst []byte) error
}

// Request asks for one expert's record. Dst belongs to the pool until its group's callback.
type Request struct {
	Layer, Expert int
	Dst           []byte
	Tag           uint64 // the caller's own
}

// End says how a request ended.
type End struct {
	Err error // nil: Dst is filled
	// when a worker took it, and when that worker was done with it, tried twice or not; zero if
	// none took it
	Began, Ended time.Time
}

// TimeoutError reports a read that has not ended. It still may.
type TimeoutError struct {
	Layer, Expert int
	// since the read began, or since it was asked for if no worker was free
	Waited time.Duration
	Begun  bool
}

func (e *TimeoutError) Error() string {
	why := "the disk does not answer"
	if !e.Begun {
		why = "no reader is free, since the disk does not answer them"
	}
	return fmt.Sprintf("readpool: layer %d expert %d has not been read after %v: %s; look at the disk, or raise the read timeout if it is only slow",
		e.Layer, e.Expert, e.Waited.Round(time.Millisecond), why)
}

// Unwrap returns os.ErrDeadlineExceeded.
func (e *TimeoutError) Unwrap() error { return os.ErrDeadlineExceeded }

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

// Stats is what a pool has counted since New.
type Stats struct {
	Reads       int64 // ended, with or without an error
	Speculative int64 // those of Reads that were speculative
	// those of Speculative that somebody came to need before they had begun
	Hurried     int64
	Bytes       int64         // of reads without an error
	Errors      int64         // reads that failed for good, or panicked
	Retried     int64         // reads that were tried twice
	Overdue     int64         // times that a request was reported as late
	Unread      int64         // requests that ended with ErrClosed
	Recalled    int64         // requests that ended with ErrRecalled
	Time        time.Duration // spent in the Source, summed over workers
	Busy        time.Duration // during which at least one request was being read
	Queued      int           // requests waiting now
	Running     int           // requests being read now
	AtOnce      int           // requests that may be read at once now
	QueuedHigh  int           // the highest value of Queued
	RunningHigh int           // the highest value of Running
}

// Pool runs reads. All methods may be called from any goroutine.
type Pool struct {
	src     Source
	cfg     Config
	wake    sync.Cond // something was queued, or the pool was closed
	wg      sync.WaitGroup
	reports sync.WaitGroup // running calls of Overdue

	mu        sync.Mutex     // guards the rest
	queue     [ranks]fifo    // the highest rank first
	hurried   [ranks][]place // requests that have left their groups for a higher rank, in order
	running   []place        // [workers] what each worker reads
	urgent    int            // of those, urgent ones
	urgentAt  time.Time      // when an urgent one ended last
	demandAt  time.Time      // when one ended last that somebody waited for
	pause     *time.Timer    // wakes workers after it
	depth     *depth         // how many workers read
	lull      *time.Timer    // has all of them read if none begins for long
	lulling   bool           // it runs
	beganAt   time.Time      // the last read
	idle      int            // workers that wait on wake
	closed    bool
	ended     bool // closed, and no worker is left
	watching  bool // the timer is armed
	watch     *time.Timer
	busySince time.Time
	stats     Stats
	free      []*group // groups whose memory can be reused
}

// place names request i of a group. Without a group it names none.
type place struct {
	g *group
	i int
}

// group is one Submit.
type group struct {
	reqs   []Request
	ends   []End  // [len(reqs)]
	notes  []note // [len(reqs)]
	done   func([]End)
	next   *group // in its queue
	queued bool
	begun  int // requests handed to a worker, or passed over because they were hurried
	left   int // requests not ended
	rank   Rank
}

// note is what the pool knows about one request.
type note struct {
	since   time.Time // when it was queued, and then when it was begun
	told    int       // reports of Overdue since
	rank    Rank      // its group's, or what Hurry said
	hurried bool      // it has left its group's queue
	begun   bool
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
	g.queued = true
}

func (q *fifo) pop() {
	g := q.head
	q.head, g.next, g.queued = g.next, nil, false
	if q.head == nil {
		q.tail = nil
	}
}

// find returns the group with a request that has not begun and is still in its group's queue, the
// group before it, nil for none, and the request's index. It returns no group if there is none.
func (q *fifo) find(tag uint64) (before, g *group, i int) {
	for g = q.head; g != nil; before, g = g, g.next {
		for i = g.begun; i < len(g.reqs); i++ {
			if g.reqs[i].Tag == tag && !g.notes[i].hurried {
				return before, g, i
			}
		}
	}
	return nil, nil, 0
}

// cut takes a group out of the list, which comes after another, nil for none.
func (q *fifo) cut(before, g *group) {
	if before == nil {
		q.pop()
		return
	}
	before.next, g.next, g.queued = g.next, nil, false
	if q.tail == g {
		q.tail = before
	}
}

// New starts a pool of workers that read from src. It must be closed.
func New(src Source, cfg Config) *Pool {
	if cfg.Workers <= 0 {
		cfg.Workers = DefaultWorkers
	}
	if cfg.Speculative <= 0 {
		cfg.Speculative = 2
	}
	cfg.Speculative = min(cfg.Speculative, cfg.Workers)
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	p := &Pool{src: src, cfg: cfg, running: make([]place, cfg.Workers), depth: newDepth(cfg.Workers, cfg.Fewer)}
	p.wake.L = &p.mu
	p.wg.Add(cfg.Workers)
	for w := range cfg.Workers {
		go p.work(w)
	}
	return p
}

// Submit queues a group of reads and returns at once. Groups of a higher rank begin first, even
// before the rest of a group that has begun, and those of one rank in order of Submit; the reads of
// one group run in parallel as far as there are workers.
//
// A read that fails is tried once more. reqs passes to the pool until done. done is called once,
// when all of the group have ended; ends is [len(reqs)], and ends[i] belongs to reqs[i]. reqs is
// the caller's again, ends the pool's when done returns. done runs on a worker, so it must be short
// and must not close the pool. On a closed pool, Submit itself calls done, with ErrClosed for every
// read. A read allocates nothing in the steady state.
func (p *Pool) Submit(reqs []Request, rank Rank, done func(ends []End)) {
	p.mu.Lock()
	g := p.newGroup(reqs, rank, done)
	if p.closed {
		p.abandon(g)
		p.mu.Unlock()
		done(g.ends)
		return
	}
	p.stats.Queued += len(reqs)
	p.stats.QueuedHigh = max(p.stats.QueuedHigh, p.stats.Queued)
	p.queue[rank.index()].push(g)
	p.arm()
	p.awaitLull()
	for range min(max(1, len(reqs)), p.idle) {
		p.wake.Signal()
	}
	p.mu.Unlock()
}

// newGroup returns a group, reusing the memory of one that has ended. p.mu is held.
func (p *Pool) newGroup(reqs []Request, rank Rank, done func([]End)) *group {
	var g *group
	if n := len(p.free) - 1; n >= 0 {
		g, p.free = p.free[n], p.free[:n]
	} else {
		g = new(group)
	}
	*g = group{reqs: reqs, ends: g.ends[:0], notes: g.notes[:0], done: done, left: len(reqs), rank: rank}
	now := time.Now()
	for range reqs {
		g.ends = append(g.ends, End{})
		g.notes = append(g.notes, note{since: now, rank: rank})
	}
	return g
}

// recycle keeps the memory of a group whose done has returned for reuse. A group still in its
// queue, because its other requests were hurried, is left there. p.mu is held.
func (p *Pool) recycle(g *group) {
	const most = 64 // groups kept
	if g.queued || len(p.free) == most {
		return
	}
	clear(g.ends)
	g.reqs, g.done = nil, nil
	p.free = append(p.free, g)
}

// Close ends the pool. It waits for running reads and ends queued ones with ErrClosed. When it
// returns, every done has been called, no worker is left, and Overdue is not called any more. A
// second Close waits like the first. A done must not call it.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.wake.Broadcast()
	p.mu.Unlock()
	p.wg.Wait()
	p.mu.Lock()
	p.ended = true
	for _, t := range []*time.Timer{p.watch, p.pause, p.lull} {
		if t != nil {
			t.Stop()
		}
	}
	p.mu.Unlock()
	p.reports.Wait()
}

// Stats returns the present figures.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.AtOnce = p.depth.most()
	if s.Running > 0 {
		s.Busy += time.Since(p.busySince)
	}
	return s
}

// work is one worker: it takes requests until the pool is closed and the queue empty.
func (p *Pool) work(worker int) {
	defer p.wg.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		g, i, ok := p.take()
		if !ok {
			return
		}
		if i >= 0 {
			began := p.begin(worker, place{g, i})
			p.mu.Unlock()
			err, again := p.readTwice(&g.reqs[i])
			now := time.Now()
			p.mu.Lock()
			p.end(worker, place{g, i}, End{err, began, now}, again)
		}
		if g.left == 0 { // this worker ended the group, no other will see 0
			p.mu.Unlock()
			g.done(g.ends)
			p.mu.Lock()
			p.recycle(g)
		}
	}
}

// begin records that a worker begins to read. p.mu is held.
func (p *Pool) begin(worker int, at place) time.Time {
	now := time.Now()
	if p.stats.Running == 0 {
		p.busySince = now
	}
	n := &at.g.notes[at.i]
	n.since, n.told, n.begun = now, 0, true
	p.running[worker] = at
	if n.rank.urgent() {
		p.urgent++
	}
	p.stats.Queued--
	p.stats.Running++
	p.stats.RunningHigh = max(p.stats.RunningHigh, p.stats.Running)
	p.depth.begun(now, p.stats.Running)
	p.beganAt = now
	p.wakeNext()
	return now
}

// end records the end of a request. p.mu is held.
func (p *Pool) end(worker int, at place, end End, again bool) {
	g := at.g
	g.ends[at.i] = end
	g.left--
	p.running[worker] = place{}
	if rank := g.notes[at.i].rank; rank.urgent() {
		p.urgent--
		p.urgentAt = end.Ended
		if rank == UrgentDemand {
			p.pauseOthers(end.Ended)
		}
	}
	p.stats.Running--
	brought := 0
	if end.Err == nil {
		brought = len(g.reqs[at.i].Dst)
	}
	p.depth.ended(end.Ended, brought, p.stats.Running)
	p.awaitLull()
	if p.stats.Running == 0 {
		p.stats.Busy += end.Ended.Sub(p.busySince)
	}
	p.stats.Reads++
	p.stats.Time += end.Ended.Sub(end.Began)
	if again {
		p.stats.Retried++
	}
	if g.rank.speculative() {
		p.stats.Speculative++
	}
	if end.Err != nil {
		p.stats.Errors++
	}
	p.stats.Bytes += int64(brought)
	p.wakeNext()
}

// abandon ends the requests of g that are still queued and returns their number. p.mu is held.
func (p *Pool) abandon(g *group) int {
	rest := 0
	for i := g.begun; i < len(g.reqs); i++ {
		if !g.notes[i].hurried {
			p.unread(g, i)
			rest++
		}
	}
	g.begun = len(g.reqs)
	return rest
}

// unread ends a request that never began. p.mu is held.
func (p *Pool) unread(g *group, i int) {
	g.ends[i] = End{Err: ErrClosed}
	g.left--
	p.stats.Unread++
}

// readTwice reads, and tries again if that fails: a cable, a network or a controller may recover at
// once. It does not try again after a panic, or if the Source is closed.
func (p *Pool) readTwice(r *Request) (err error, again bool) {
	if err = p.read(r); err == nil || !worthAgain(err) {
		return err, false
	}
	return p.read(r), true
}

func worthAgain(err error) bool {
	var panicked *PanicError
	return !errors.As(err, &panicked) && !errors.Is(err, os.ErrClosed)
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
