package launch

import (
	"errors"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
)

// submitted is what a queue keeps with the ticket of a Submit.
type submitted struct {
	commands *gpu.Commands
	x        *encoder // that encoded it
	tables   []byte   // of the operations, until it is done
	pages    []uint64 // likewise
	failed   error    // while encoding
	// when it was all given to the stream
	committed time.Time
	complete  func(ns int64, err error)
}

// ticket is the completion of one Submit.
type ticket = gpu.Pending[submitted]

// queue encodes Commands one after the other: in its own goroutine, or, for an Asynchronous back
// end, in Submit. It is unbounded: Submit never waits.
type queue struct {
	d       *Device
	tickets gpu.Tickets[submitted]

	encoding sync.Mutex // held while x is in use
	// for an Asynchronous back end, whose Submit encodes; else nil, and the queue's goroutine has
	// its own
	x *encoder

	mu       sync.Mutex
	waiting  []*ticket // submitted, not encoded
	inFlight []bool    // encoded, not done, oldest first: whether they are urgent
	closed   bool
	watch    func(gpu.Progress)
	wake     chan struct{} // a value means: look at waiting and closed
	ended    chan error    // of the goroutine

	watching sync.Mutex // orders calls of watch; taken before mu

	done time.Time // when the last work was over; only who completes work uses it

	copies []PeerCopy // of one Receive; guarded by encoding
}

var (
	_ gpu.Queue   = (*queue)(nil)
	_ gpu.Watched = (*queue)(nil)
)

// NewQueue starts a queue; its Close ends it.
func (d *Device) NewQueue() (gpu.Queue, error) {
	if err := d.count(&d.queues); err != nil {
		return nil, err
	}
	q := &queue{d: d, wake: make(chan struct{}, 1), ended: make(chan error, 1)}
	if _, ok := d.b.(Asynchronous); ok {
		stream, err := d.b.NewStream()
		if err != nil {
			d.uncount(&d.queues)
			return nil, err
		}
		q.x = &encoder{d: d, stream: stream}
		return q, nil
	}
	began := make(chan error, 1)
	go q.serve(began)
	if err := <-began; err != nil {
		d.uncount(&d.queues)
		return nil, err
	}
	return q, nil
}

// Watch makes the queue report when it works, see gpu.Watched. If several Submits are in flight,
// the work of one begins when the work of the one before it ends.
func (q *queue) Watch(f func(gpu.Progress)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.watch = f
}

func (q *queue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if q.x != nil {
		q.encoding.Lock()
		defer q.encoding.Unlock()
	}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil, gpu.ErrClosed
	}
	c.Accept()
	t := q.ticket(c)
	if q.x != nil {
		q.mu.Unlock()
		q.run(q.x, t)
		return t, nil
	}
	q.waiting = append(q.waiting, t)
	q.mu.Unlock()
	q.poke()
	return t, nil
}

// ticket returns a ticket for c.
func (q *queue) ticket(c *gpu.Commands) *ticket {
	t, fresh := q.tickets.Get()
	if fresh {
		t.Of.complete = func(ns int64, err error) { q.complete(t, ns, err) }
	}
	t.Of.commands = c
	return t
}

func (q *queue) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Close waits for the submitted work and the callbacks of its tickets, and ends the queue. Closing
// twice is a no-op.
func (q *queue) Close() error {
	q.mu.Lock()
	again := q.closed
	q.closed = true
	q.mu.Unlock()
	if again {
		return nil
	}
	var err error
	if q.x != nil {
		q.encoding.Lock()
		defer q.encoding.Unlock()
		err = q.x.stream.Close()
		q.x.release()
	} else {
		q.poke()
		err = <-q.ended
	}
	q.d.uncount(&q.d.queues)
	return err
}

// serve encodes what is submitted until the queue is closed; began says whether it could begin.
func (q *queue) serve(began chan<- error) {
	stream, err := q.d.b.NewStream()
	began <- err
	if err != nil {
		return
	}
	x := &encoder{d: q.d, stream: stream}
	for {
		t, closed := q.take()
		switch {
		case t != nil:
			q.run(x, t)
		case closed:
			err := stream.Close()
			x.release()
			q.ended <- err
			return
		default:
			<-q.wake
		}
	}
}

// take returns the oldest ticket, or nil and whether the queue is closed.
func (q *queue) take() (t *ticket, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil, q.closed
	}
	t = q.waiting[0]
	n := copy(q.waiting, q.waiting[1:]) // a few at most
	q.waiting[n] = nil
	q.waiting = q.waiting[:n]
	return t, false
}

// run encodes t's commands and gives them to the stream.
func (q *queue) run(x *encoder, t *ticket) {
	q.watching.Lock()
	q.mu.Lock()
	urgent := t.Of.commands.Urgent
	q.inFlight = append(q.inFlight, urgent)
	first, watch := len(q.inFlight) == 1, q.watch
	q.mu.Unlock()
	if first && watch != nil {
		watch(gpu.Progress{Working: true, Urgent: urgent})
	}
	q.watching.Unlock()
	t.Of.x, t.Of.failed = x, x.run(&t.Of)
	t.Of.committed = time.Now()
	x.stream.Commit(t.Of.complete)
}

// complete ends t, as the back end reports.
func (q *queue) complete(t *ticket, ns int64, err error) {
	late := q.late(t, ns)
	err = errors.Join(t.Of.failed, err)
	if err != nil {
		t.Of.x.failed.Store(true)
	}
	q.watching.Lock()
	q.mu.Lock()
	was, watch := q.inFlight[0], q.watch
	n := copy(q.inFlight, q.inFlight[1:]) // a few at most
	q.inFlight = q.inFlight[:n]
	more := n > 0
	is := more && q.inFlight[0]
	q.mu.Unlock()
	if watch != nil {
		watch(gpu.Progress{Urgent: was, DeviceNS: ns, LateNS: late})
		if more {
			watch(gpu.Progress{Working: true, Urgent: is, LateNS: late})
		}
	}
	q.watching.Unlock()
	t.Of.commands, t.Of.failed = nil, nil // they are the caller's again
	t.Complete(ns, err)
}

// late returns how long ago work ended that took ns: it is told late when the goroutine that waits
// for the device was busy with what the work before it had completed, such as all stages of a
// pipeline. Work begins when it has been committed and the work before it is over.
func (q *queue) late(t *ticket, ns int64) int64 {
	now, began := time.Now(), t.Of.committed
	if q.done.After(began) {
		began = q.done
	}
	q.done = now
	w, ok := t.Of.x.stream.(Waiter)
	if ended := began.Add(time.Duration(ns)); ok && !w.Waited() && ended.Before(now) {
		q.done = ended
	}
	return int64(now.Sub(q.done))
}
