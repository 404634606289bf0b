package readpool

import (
	"errors"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// DefaultWorkers is the number of workers where Config does not say.
const DefaultWorkers = 8

// DefaultTimeout is how long a read may take before it is reported, where Config does not say.
const DefaultTimeout = 30 * time.Second

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
			err, again := ReadTwice(p.src, &g.reqs[i])
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

// ReadTwice reads what r asks for, and tries again if that fails: a cable, a network or a
// controller may recover at once. It does not try again after a panic, which it returns as an
// error, or if src is closed.
func ReadTwice(src Source, r *Request) (err error, again bool) {
	if err = read(src, r); err == nil || !worthAgain(err) {
		return err, false
	}
	return read(src, r), true
}

func worthAgain(err error) bool {
	var panicked *PanicError
	return !errors.As(err, &panicked) && !errors.Is(err, os.ErrClosed)
}

// read calls the Source and turns a panic into an error.
func read(src Source, r *Request) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Layer: r.Layer, Expert: r.Expert, Value: v, Stack: debug.Stack()}
		}
	}()
	return src.ReadExpert(r.Layer, r.Expert, r.Dst)
}
