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

	giving sync.Mutex // held while parts are given work, so that it comes to them in order

	// memory that is used again: the first two guarded by giving, the last by mu
	spareHeld      []*held
	spareLists     [][]given
	spareTransfers []*transfer

	tickets gpu.Tickets[work]
	mu      sync.Mutex // guards the rest
	telling bool       // a goroutine tells
	closed  bool
	quiet   sync.Cond // of mu: no line has a ticket, and nobody tells
}

// ticket is the completion of one Submit.
type ticket = gpu.Pending[work]

// work is what a queue keeps with the ticket of a Submit.
type work struct {
	commands *gpu.Commands
	end      func(error) // hears that the part has done it
	done     bool
	ns       int64
	err      error
	part     gpu.Ticket // of the part, when it has been given the work
	after    uint64     // how many tickets of the part before are told first
}

var (
	_ gpu.Queue   = (*queue)(nil)
	_ gpu.Watched = (*queue)(nil)
)

// NewQueue makes a queue of each part.
func (d *Device) NewQueue() (gpu.Queue, error) {
	q := &queue{d: d}
	q.quiet.L = &q.mu
	for i, p := range d.parts {
		inner, err := p.NewQueue()
		if err != nil {
			return nil, errors.Join(err, q.closeParts())
		}
		q.lines = append(q.lines, &line{queue: inner, reports: reports{part: i}})
	}
	q.direct = true
	for i, l := range q.lines[1:] {
		r, ok := l.queue.(gpu.Receiver)
		q.direct = q.direct && ok && r.Reaches(q.lines[i].queue)
	}
	return q, nil
}

// Watch makes the queue report when its parts work, see gpu.Watched. What is uploaded for work
// counts with it; what is downloaded for another part's is not reported.
func (q *queue) Watch(f func(gpu.Progress)) {
	for _, l := range q.lines {
		l.reports.from(l.queue, f)
	}
}

// Submit hands c to the part that it names, or holds it back until the part has what c needs.
func (q *queue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	if c.Part < 0 || c.Part >= len(q.lines) {
		return nil, fmt.Errorf("split: commands for part %d of %d", c.Part, len(q.lines))
	}
	q.giving.Lock()
	t, all, err := q.give(c)
	q.giving.Unlock()
	q.attach(all)
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
	part, err := l.submit(c, computing)
	if err != nil {
		return nil, nil, err
	}
	if t, err = q.enter(c); err != nil {
		return nil, nil, err
	}
	t.Of.part = part
	return t, append(q.list(), given{ticket: part, end: t.Of.end}), nil
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

// enter puts a ticket for c at the end of its part's order.
func (q *queue) enter(c *gpu.Commands) (*ticket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, gpu.ErrClosed
	}
	t, fresh := q.tickets.Get()
	if fresh {
		t.Of.end = func(err error) { q.ended(t, err) }
	}
	l := q.lines[c.Part]
	t.Of.commands, t.Of.done, t.Of.err, t.Of.ns, t.Of.part, t.Of.after = c, false, nil, 0, nil, 0
	if len(c.Moves) > 0 {
		t.Of.after = q.lines[c.Part-1].entered
	}
	l.entered++
	l.order = append(l.order, t)
	return t, nil
}

// ended notes that a part has done the work of a ticket, and tells of all that may be told.
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
	for l := q.ready(); l != nil; l = q.ready() {
		q.tell(l)
	}
	q.telling = false
	q.quiet.Broadcast()
	q.mu.Unlock() // not deferred: tell lets mu go, and whom it tells may panic
}

// ready returns a line whose oldest ticket is done and may be told: so are those that its moves
// came after.
func (q *queue) ready() *line {
	for i, l := range q.lines {
		if len(l.order) > 0 && l.order[0].Of.done && (i == 0 || l.order[0].Of.after <= q.lines[i-1].told) {
			return l
		}
	}
	return nil
}

// tell completes a line's oldest ticket. The caller holds mu, which is let go meanwhile.
func (q *queue) tell(l *line) {
	t := l.order[0]
	n := copy(l.order, l.order[1:]) // a few at most
	l.order[n] = nil
	l.order = l.order[:n]
	ns, err := t.Of.ns, t.Of.err
	t.Of.commands, t.Of.err = nil, nil // they are the caller's again
	q.mu.Unlock()
	t.Complete(ns, err)
	q.mu.Lock()
	l.told++
}

// Close waits for the submitted work and the callbacks of its tickets, and ends the queue. Closing
// twice is a no-op.
func (q *queue) Close() error {
	q.mu.Lock()
	again := q.closed
	q.closed = true
	for !again && (q.telling || q.open()) {
		q.quiet.Wait()
	}
	q.mu.Unlock()
	if again {
		return nil
	}
	return q.closeParts()
}

// open reports whether a ticket is not told. The caller holds mu.
func (q *queue) open() bool {
	for _, l := range q.lines {
		if len(l.order) > 0 {
			return true
		}
	}
	return false
}

func (q *queue) closeParts() error {
	var errs []error
	for _, l := range q.lines {
		errs = append(errs, l.queue.Close())
	}
	return errors.Join(errs...)
}
