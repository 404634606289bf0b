package host

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
)

// queue runs Commands one after the other in its own goroutine. It is unbounded: Submit never
// waits.
type queue struct {
	d *Device
	x *executor

	mu      sync.Mutex
	waiting []*ticket
	first   int // index of the oldest in waiting
	closed  bool
	spare   []*ticket     // whose callbacks have returned
	watch   func(bool)    // or nil; see gpu.Watched
	wake    chan struct{} // a value means: look at waiting and closed
	ended   chan struct{}
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
	q := &queue{d: d, x: d.executorLocked(), wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go q.serve()
	return q, nil
}

// Watch makes the queue report when it works, see gpu.Watched.
func (q *queue) Watch(f func(working bool)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.watch = f
}

func (q *queue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil, gpu.ErrClosed
	}
	c.Accept()
	t := q.ticketLocked()
	t.commands = c
	q.waiting = append(q.waiting, t)
	q.mu.Unlock()
	q.poke()
	return t, nil
}

// ticketLocked returns a ticket, reusing one that nobody holds any more if there is one. q.mu is
// held.
func (q *queue) ticketLocked() *ticket {
	if n := len(q.spare) - 1; n >= 0 {
		t := q.spare[n]
		q.spare = q.spare[:n]
		return t
	}
	return &ticket{q: q}
}

// recycle takes back a ticket whose callback has returned.
func (q *queue) recycle(t *ticket) {
	t.mu.Lock()
	t.done, t.err, t.f = false, nil, nil
	t.mu.Unlock()
	t.ns.Store(0)
	q.mu.Lock()
	q.spare = append(q.spare, t)
	q.mu.Unlock()
}

func (q *queue) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Close waits for the submitted work and the callbacks of its tickets, then ends the queue. Closing
// twice is a no-op.
func (q *queue) Close() error {
	q.mu.Lock()
	again := q.closed
	q.closed = true
	q.mu.Unlock()
	q.poke()
	<-q.ended
	if again {
		return nil
	}
	q.d.mu.Lock()
	defer q.d.mu.Unlock()
	q.d.queues--
	q.d.idle = append(q.d.idle, q.x)
	return nil
}

func (q *queue) serve() {
	defer close(q.ended)
	for {
		t, watch, closed := q.take()
		switch {
		case t != nil:
			if watch != nil {
				watch(true)
			}
			began := time.Now()
			err := q.x.run(t.commands)
			took := time.Since(began)
			if watch != nil {
				watch(false)
			}
			t.complete(err, took)
		case closed:
			return
		default:
			<-q.wake
		}
	}
}

// take returns the oldest ticket and the watcher, or nil and whether there will be no more.
func (q *queue) take() (t *ticket, watch func(bool), closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first == len(q.waiting) {
		return nil, nil, q.closed
	}
	t = q.waiting[q.first]
	q.waiting[q.first] = nil
	q.first++
	switch {
	case q.first == len(q.waiting):
		q.waiting, q.first = q.waiting[:0], 0
	case q.first >= 64 && 2*q.first >= len(q.waiting):
		// A queue that never runs empty must not keep the entries of all that it has done.
		n := copy(q.waiting, q.waiting[q.first:])
		clear(q.waiting[n:])
		q.waiting, q.first = q.waiting[:n], 0
	}
	return t, q.watch, false
}

// ticket is the completion of one Submit.
type ticket struct {
	q        *queue
	commands *gpu.Commands
	ns       atomic.Int64

	mu   sync.Mutex
	done bool
	err  error
	f    func(error)
}

// OnDone calls f once when the work is complete, see gpu.Ticket.
func (t *ticket) OnDone(f func(error)) {
	t.mu.Lock()
	if t.f != nil {
		t.mu.Unlock()
		panic("host: OnDone was called twice")
	}
	t.f = f
	done, err := t.done, t.err
	t.mu.Unlock()
	if done {
		f(err)
		t.q.recycle(t)
	}
}

// DeviceNS returns how long the work took, at least 1 once it is done.
func (t *ticket) DeviceNS() int64 { return t.ns.Load() }

func (t *ticket) complete(err error, took time.Duration) {
	t.commands = nil // they belong to the caller again
	t.ns.Store(max(1, int64(took)))
	t.mu.Lock()
	t.done, t.err = true, err
	f := t.f
	t.mu.Unlock()
	if f != nil {
		f(err)
		t.q.recycle(t)
	}
}
