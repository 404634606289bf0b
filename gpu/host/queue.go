package host

import (
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
)

// ticket is the completion of one Submit.
type ticket = gpu.Pending[*gpu.Commands]

// queue runs Commands one after the other in its own goroutine. It is unbounded: Submit never
// waits. Commands that are not urgent stop between two operations, and between two chunks of a long
// one, to let urgent ones run in the same goroutine.
type queue struct {
	d       *Device
	x       *executor // of what is not urgent
	urgent  *executor
	tickets gpu.Tickets[*gpu.Commands]
	line    *gpu.Line[*ticket] // a nil ticket says: look at hurried
	pause   pause              // of x
	// nil, or see gpu.Watched
	watch func(gpu.Progress)
	bound chan error // hears whether the thread has its place, before the first work; then nil

	mu      sync.Mutex // guards the rest
	hurried []*ticket  // urgent, oldest first; a few at most
	closed  bool
}

var (
	_ gpu.Queue   = (*queue)(nil)
	_ gpu.Watched = (*queue)(nil)
)

// NewQueue starts a queue; its Close ends it.
func (d *Device) NewQueue() (gpu.Queue, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, gpu.ErrClosed
	}
	d.queues++
	q := &queue{d: d, x: d.executorLocked(), urgent: d.executorLocked()}
	q.pause.do = q.hurry
	q.x.pause = &q.pause
	if d.pool.places == nil {
		q.line = gpu.NewLine(q.next)
		return q, nil
	}
	bound := make(chan error)
	q.bound = bound
	q.line = gpu.NewLine(q.next)
	q.line.Add(nil)
	err := <-bound
	if err != nil {
		q.line.Close()
		d.queues--
		q.x.pause = nil
		d.idle = append(d.idle, q.x, q.urgent)
		return nil, err
	}
	return q, nil
}

// Preempts says that queues run urgent Commands amid others.
func (d *Device) Preempts() {}

// Watch makes the queue report when it works, see gpu.Watched.
func (q *queue) Watch(f func(gpu.Progress)) { q.watch = f }

func (q *queue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t, _ := q.tickets.Get()
	t.Of = c
	urgent := c.Urgent
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, gpu.ErrClosed
	}
	c.Accept()
	if !urgent {
		q.line.Add(t)
		return t, nil
	}
	q.hurried = append(q.hurried, t)
	q.pause.wanted.Store(true)
	q.line.Add(nil)
	return t, nil
}

// Close waits for the submitted work and the callbacks of its tickets, and ends the queue. Closing
// twice is a no-op.
func (q *queue) Close() error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	if !q.line.Close() {
		return nil
	}
	q.d.mu.Lock()
	defer q.d.mu.Unlock()
	q.d.queues--
	q.x.pause = nil
	q.d.idle = append(q.d.idle, q.x, q.urgent)
	return nil
}

// next runs all urgent work, and then the commands of a ticket, if there is one.
func (q *queue) next(t *ticket) {
	if q.bound != nil {
		bound := q.bound
		q.bound = nil
		bound <- q.d.pool.bind(0, q.d.Threads())
	}
	q.hurry()
	if t == nil {
		return
	}
	q.run(t, q.x)
}

// hurry runs urgent work until there is none.
func (q *queue) hurry() {
	if !q.pause.wanted.Load() {
		return
	}
	began := time.Now()
	for t := q.first(); t != nil; t = q.first() {
		q.run(t, q.urgent)
	}
	q.pause.lent += time.Since(began)
}

// first removes and returns the oldest urgent ticket, or nil.
func (q *queue) first() *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.hurried) == 0 {
		q.pause.wanted.Store(false)
		return nil
	}
	t := q.hurried[0]
	n := copy(q.hurried, q.hurried[1:])
	q.hurried[n] = nil
	q.hurried = q.hurried[:n]
	return t
}

// run runs the commands of one ticket.
func (q *queue) run(t *ticket, x *executor) {
	urgent := t.Of.Urgent
	if q.watch != nil {
		q.watch(gpu.Progress{Working: true, Urgent: urgent})
	}
	x.clock.start(x.pause)
	err := x.run(t.Of)
	took := x.clock.worked(x.pause)
	if q.watch != nil {
		q.watch(gpu.Progress{Urgent: urgent, DeviceNS: took})
	}
	t.Of = nil // the caller's again
	t.Complete(took, err)
}
