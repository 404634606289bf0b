package host

import (
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
)

// ticket is the completion of one Submit.
type ticket = gpu.Pending[*gpu.Commands]

// queue runs Commands one after the other in its own goroutine. It is unbounded: Submit never
// waits.
type queue struct {
	d       *Device
	x       *executor
	tickets gpu.Tickets[*gpu.Commands]
	line    *gpu.Line[*ticket]
	watch   func(bool) // or nil; see gpu.Watched
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
	q := &queue{d: d, x: d.executorLocked()}
	q.line = gpu.NewLine(q.run)
	return q, nil
}

// Watch makes the queue report when it works, see gpu.Watched.
func (q *queue) Watch(f func(working bool)) { q.watch = f }

func (q *queue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t, _ := q.tickets.Get()
	t.Of = c
	if !q.line.Add(t) {
		return nil, gpu.ErrClosed
	}
	c.Accept()
	return t, nil
}

// Close waits for the submitted work and the callbacks of its tickets, and ends the queue. Closing
// twice is a no-op.
func (q *queue) Close() error {
	if !q.line.Close() {
		return nil
	}
	q.d.mu.Lock()
	defer q.d.mu.Unlock()
	q.d.queues--
	q.d.idle = append(q.d.idle, q.x)
	return nil
}

// run runs the commands of one ticket.
func (q *queue) run(t *ticket) {
	if q.watch != nil {
		q.watch(true)
	}
	began := time.Now()
	err := q.x.run(t.Of)
	took := time.Since(began)
	if q.watch != nil {
		q.watch(false)
	}
	t.Of = nil // the caller's again
	t.Complete(int64(took), err)
}
