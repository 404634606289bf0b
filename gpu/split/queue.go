package split

import (
	"errors"
	"fmt"
	"sync"

	"github.com/moeflux/moeflux-actor/gpu"
)

// queue has a queue of each part.
type queue struct {
	d     *Device
	lines []*line // [parts]
	// each part takes memory from the one before it without the host: nothing is ever held back
	direct bool

	giving sync.Mutex  // held while parts are given work, so that it comes to them in order
	spare  []*transfer // guarded by mu

	tickets gpu.Tickets[work]
	mu      sync.Mutex // guards the rest
	order   []*ticket  // submitted and not told to be done, oldest first
	telling bool       // a goroutine tells
	closed  bool
	quiet   sync.Cond // of mu: nothing is in order, and nobody tells
	watch   func(working, urgent bool, deviceNS, lateNS int64)

	watching sync.Mutex // orders calls of watch; taken before mu
}

// ticket is the completion of one Submit.
type ticket = gpu.Pending[work]

// work is what a queue keeps with the ticket of a Submit.
type work struct {
	commands *gpu.Commands
	urgent   bool
	end      func(error) // hears that the part has done it
	done     bool
	ns       int64
	err      error
	part     gpu.Ticket // of the part, when it has been given the work
}

var (
	_ gpu.Queue   = (*queue)(nil)
	_ gpu.Watched = (*queue)(nil)
)

// NewQueue makes a queue of each part.
func (d *Device) NewQueue() (gpu.Queue, error) {
	q := &queue{d: d}
	q.quiet.L = &q.mu
	for _, p := range d.parts {
		inner, err := p.NewQueue()
		if err != nil {
			return nil, errors.Join(err, q.closeParts())
		}
		q.lines = append(q.lines, &line{queue: inner})
	}
	q.direct = true
	for i, l := range q.lines[1:] {
		r, ok := l.queue.(gpu.Receiver)
		q.direct = q.direct && ok && r.Reaches(q.lines[i].queue)
	}
	return q, nil
}

// Watch makes the queue report when it works, see gpu.Watched: when any part does. If several
// Submits are in flight, the work of one begins when that of the one before it has ended.
func (q *queue) Watch(f func(working, urgent bool, deviceNS, lateNS int64)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.watch = f
}

// Submit hands c to the part that it names, or holds it back until the part has what c needs.
func (q *queue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	if c.Part < 0 || c.Part >= len(q.lines) {
		return nil, fmt.Errorf("split: commands for part %d of %d", c.Part, len(q.lines))
	}
	q.giving.Lock()
	t, all, err := q.give(c)
	q.giving.Unlock()
	attach(all)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// give gives c to its part if it can be given now, and returns what was given. The caller holds
// giving, and attaches to what was given when it does not any more.
func (q *queue) give(c *gpu.Commands) (t *ticket, all []given, err error) {
	l := q.lines[c.Part]
	if err := q.checkMoves(c); err != nil {
		return nil, nil, err
	}
	if !q.direct && (len(c.Moves) > 0 || len(l.held) > 0) {
		if err := c.Check(); err != nil {
			return nil, nil, err
		}
		if t, err = q.enter(c); err == nil {
			all = q.hold(t)
		}
		return t, all, err
	}
	if q.isClosed() {
		return nil, nil, gpu.ErrClosed
	}
	if len(c.Moves) > 0 {
		if err := l.queue.(gpu.Receiver).Receive(q.lines[c.Part-1].queue, c.Moves); err != nil {
			return nil, nil, err
		}
	}
	part, err := l.queue.Submit(c)
	if err != nil {
		return nil, nil, err
	}
	if t, err = q.enter(c); err != nil {
		return nil, nil, err
	}
	t.Of.part = part
	return t, []given{{ticket: part, end: t.Of.end}}, nil
}

// checkMoves reports moves that do not come from the part before.
func (q *queue) checkMoves(c *gpu.Commands) error {
	for _, m := range c.Moves {
		if m.From != c.Part-1 || m.From < 0 {
			return fmt.Errorf("split: a move from part %d to part %d, which are not one after the other", m.From, c.Part)
		}
	}
	return c.CheckMoves()
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// enter puts a ticket for c at the end of the order.
func (q *queue) enter(c *gpu.Commands) (*ticket, error) {
	q.watching.Lock()
	defer q.watching.Unlock()
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil, gpu.ErrClosed
	}
	t, fresh := q.tickets.Get()
	if fresh {
		t.Of.end = func(err error) { q.ended(t, err) }
	}
	t.Of.commands, t.Of.urgent, t.Of.done, t.Of.err, t.Of.ns, t.Of.part = c, c.Urgent, false, nil, 0, nil
	q.order = append(q.order, t)
	first, watch := len(q.order) == 1, q.watch
	q.mu.Unlock()
	if first && watch != nil {
		watch(true, t.Of.urgent, 0, 0)
	}
	return t, nil
}

// ended notes that a part has done the work of a ticket, and tells of all that are done before any
// that is not.
func (q *queue) ended(t *ticket, err error) {
	q.mu.Lock()
	if t.Of.part != nil {
		t.Of.ns, t.Of.part = t.Of.part.DeviceNS(), nil
	}
	t.Of.done, t.Of.err = true, errors.Join(t.Of.err, err)
	if q.telling {
		q.mu.Unlock()
		return
	}
	q.telling = true
	q.mu.Unlock()
	for q.tell() {
	}
}

// tell completes the oldest ticket, if it is done, and reports whether there may be more.
func (q *queue) tell() bool {
	q.watching.Lock()
	q.mu.Lock()
	if len(q.order) == 0 || !q.order[0].Of.done {
		q.telling = false
		q.quiet.Broadcast()
		q.mu.Unlock()
		q.watching.Unlock()
		return false
	}
	t := q.order[0]
	n := copy(q.order, q.order[1:]) // a few at most
	q.order[n] = nil
	q.order = q.order[:n]
	next, watch := n > 0, q.watch
	urgent := next && q.order[0].Of.urgent
	q.mu.Unlock()
	ns, err := t.Of.ns, t.Of.err
	if watch != nil {
		watch(false, t.Of.urgent, ns, 0)
		if next {
			watch(true, urgent, 0, 0)
		}
	}
	q.watching.Unlock()
	t.Of.commands, t.Of.err = nil, nil // they are the caller's again
	t.Complete(ns, err)
	return true
}

// Close waits for the submitted work and the callbacks of its tickets, and ends the queue. Closing
// twice is a no-op.
func (q *queue) Close() error {
	q.mu.Lock()
	again := q.closed
	q.closed = true
	for !again && (len(q.order) > 0 || q.telling) {
		q.quiet.Wait()
	}
	q.mu.Unlock()
	if again {
		return nil
	}
	return q.closeParts()
}

func (q *queue) closeParts() error {
	var errs []error
	for _, l := range q.lines {
		errs = append(errs, l.queue.Close())
	}
	return errors.Join(errs...)
}
