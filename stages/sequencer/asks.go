package sequencer

import (
	"errors"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/admission"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// ask is a request that needs memory, from when it comes until it has got it.
type ask struct {
	seq    *sequence // on whose account, and which is busy meanwhile if it is not copied itself
	caller stages.Caller
	chunk  *request  // nil: it is not an EvalChunk
	copied *sequence // that is to be copied as it stands then, or nil
	enters bool      // the sequence will be one more that has memory
	atOnce bool      // it does not wait
	number int64     // of all asks so far
	// what it comes to if nobody else has anything
	pages, states int

	room   func() error                      // makes room; see roomFor for the error
	take   func(*stages.Outbox)              // there is room: goes on
	refuse func(err error, o *stages.Outbox) // answers the caller

	entry   *admission.Ask[*ask] // nil: not in the queue
	request uint64               // of the chunk that needs the memory, if it is one
	since   int64                // when it came into the queue
}

// asks are those that wait.
type asks struct {
	queue   *admission.Queue[*ask]
	stirred bool // memory was given back, or nobody may be about to do so any more
	most    int  // that waited at once

	count, waited, granted, turnedAway int64
}

func newAsks(most int) asks {
	return asks{queue: admission.New[*ask](stages.NumClasses, most)}
}

// obtain goes on with a request as soon as there is memory for it: now, if there is and nobody
// waits; else it waits in the queue, unless waiting cannot help.
func (c *Core) obtain(a *ask, out *stages.Outbox) {
	c.asks.count++
	a.number = c.asks.count
	a.hold()
	fits := c.book.Fits(a.pages, a.states)
	atOnce := a.atOnce || c.cfg.MaxWaiting == 0 && !a.seq.grant.holds
	if fits && !atOnce && c.asks.queue.Len() > 0 {
		c.wait(a, out)
		return
	}
	err := c.roomFor(a)
	if err == nil && c.asks.queue.Len() > 0 {
		err = c.book.Lack(a.pages, a.states) // what there is belongs to those who wait
	}
	switch {
	case err == nil:
		a.release()
		a.take(out)
	case !atOnce && fits && (c.makeRoom(a, err, out) || c.hope() || c.tryAgain(a, err, out)):
		c.wait(a, out)
	default:
		a.release()
		a.refuse(err, out)
	}
}

// hold notes with the sequences what they wait for.
func (a *ask) hold() {
	if a.copied != nil {
		a.copied.copies++
	}
	if a.copied != a.seq {
		a.seq.ask = a
	}
}

// release is the contrary.
func (a *ask) release() {
	if a.copied != nil {
		a.copied.copies--
	}
	if a.copied != a.seq {
		a.seq.ask = nil
	}
}

// roomFor makes room for a request. The error is a *stages.StateMemoryError, or says why the
// request is of no use any more.
func (c *Core) roomFor(a *ask) error {
	if most := c.cfg.MaxSequences; a.enters && most > 0 {
		if n := c.inside(); n >= most {
			return &stages.StateMemoryError{Sequences: n}
		}
	}
	return a.room()
}

// wait puts a request into the queue. Those that have memory already are let in before others, and
// are never turned away.
func (c *Core) wait(a *ask, out *stages.Outbox) {
	q, share := c.asks.queue, a.seq.grant.share
	c.asks.waited++
	a.since = c.notes.now
	c.asks.stirred = true // it may be the next one
	var gone *admission.Ask[*ask]
	if a.seq.grant.holds {
		a.entry = q.Grow(share, a)
	} else {
		a.entry, gone = q.Add(share, a)
	}
	if gone != nil {
		c.asks.turnedAway++
		c.settle(gone.For, &stages.QueueFullError{Waiting: q.Len()}, out)
	}
	c.asks.most = max(c.asks.most, q.Len())
}

// unqueue takes a request out of the queue.
func (c *Core) unqueue(a *ask, out *stages.Outbox) {
	c.asks.queue.Withdraw(a.entry)
	c.notes.wait(record.Wait{Request: a.request, BeganNS: a.since, Layer: -1, Wave: -1, Reason: record.Memory})
	a.release()
	c.asks.stirred = true
	out.Served++
}

// settle ends a request that waits, with an error.
func (c *Core) settle(a *ask, err error, out *stages.Outbox) {
	c.unqueue(a, out)
	a.refuse(err, out)
}

// letIn gives memory to those who wait, strictly in the order of the queue.
func (c *Core) letIn(out *stages.Outbox) {
	if !c.asks.stirred {
		return
	}
	for c.asks.stirred = false; ; {
		head := c.asks.queue.Head()
		if head == nil {
			return
		}
		switch err := c.roomFor(head.For); {
		case err == nil:
			c.admitted(head.For, out)
		case !errors.As(err, new(*stages.StateMemoryError)):
			c.settle(head.For, err, out)
		case c.makeRoom(head.For, err, out) || c.hope() || c.tryAgain(head.For, err, out):
			return
		default:
			c.stuck(head.For, err, out)
		}
	}
}

// admitted goes on with a request that has waited.
func (c *Core) admitted(a *ask, out *stages.Outbox) {
	c.asks.granted++
	c.unqueue(a, out)
	a.take(out)
}

// hope reports whether somebody may be expected to give memory back by himself.
func (c *Core) hope() bool {
	if len(c.exchange.open) > 0 || len(c.ops.under) > 0 {
		return true
	}
	for _, s := range c.seqs {
		running := s.req != nil && s.ask == nil
		// who declared where it ends is expected to go on, and then to give its memory back
		declared := s.grant.holds && s.grant.declared && s.ask == nil && s.copies == 0
		if running || declared || s.moving() {
			return true
		}
	}
	return false
}

// stuck does something for those who wait, of whom head is the next one, where nobody else will
// give memory back. A text that goes on where it has memory frees the memory in the end, so that is
// tried first, out of order. If several wait in the middle of their texts, each for the others, or
// one of a lower class does, the youngest of the lowest class has to give up what it has: it has
// grown beyond what it declared. Where states can be parked, one of them is parked instead.
// Otherwise who is next is told that waiting does not help.
func (c *Core) stuck(head *ask, err error, out *stages.Outbox) {
	var fits, victim, parks *ask // parks: whose state may be parked for the head
	inside := 0
	c.asks.queue.All(func(e *admission.Ask[*ask]) bool {
		a := e.For
		if a.chunk == nil || !a.seq.grant.holds {
			return true
		}
		inside++
		if victim == nil || a.class() < victim.class() || a.class() == victim.class() && a.seq.id > victim.seq.id {
			victim = a
		}
		if a != head && c.parkable(a.seq) && (parks == nil || a.class() < parks.class() || a.class() == parks.class() && a.seq.id > parks.seq.id) {
			parks = a
		}
		if c.roomFor(a) == nil {
			fits = a
		}
		return fits == nil
	})
	switch {
	case fits != nil:
		c.admitted(fits, out)
	case parks != nil:
		c.preempt(parks, out)
	case inside > 1 || inside == 1 && victim.class() < head.class():
		err := c.roomFor(victim)
		c.unqueue(victim, out)
		c.vacate(victim.seq, out)
		victim.seq.poison = &stages.PoisonedError{Seq: victim.seq.id, Err: err}
		victim.refuse(err, out)
	default:
		c.settle(head, err, out)
	}
}

func (a *ask) class() int { return a.seq.grant.share.Class() }

// withdraw takes back what waits. It does nothing if the request does not wait any more.
func (c *Core) withdraw(m *stages.Withdraw, out *stages.Outbox) {
	var found *ask
	c.asks.queue.All(func(e *admission.Ask[*ask]) bool {
		if e.For.chunk == nil && e.For.caller == m.Of {
			found = e.For
		}
		return found == nil
	})
	if found != nil {
		c.settle(found, m.Cause, out)
	}
}

// refuseAll ends all that waits, but chunks of texts that have memory.
func (c *Core) refuseAll(out *stages.Outbox) {
	c.refuseIf(func(a *ask) bool { return a.chunk == nil || !a.seq.grant.holds }, out)
}

// stopWaiting ends what waits because of a sequence that is to be closed, but its chunk.
func (c *Core) stopWaiting(s *sequence, out *stages.Outbox) {
	c.refuseIf(func(a *ask) bool { return a.chunk == nil && (a.seq == s || a.copied == s) }, out)
}

func (c *Core) refuseIf(which func(*ask) bool, out *stages.Outbox) {
	var list []*ask
	c.asks.queue.All(func(e *admission.Ask[*ask]) bool {
		if which(e.For) {
			list = append(list, e.For)
		}
		return true
	})
	for _, a := range list {
		c.settle(a, stages.ErrClosed, out)
	}
}

func (c *Core) admissionStats() stages.AdmissionStats {
	return stages.AdmissionStats{
		Sequences: c.inside(), PromisedBytes: c.book.Promised(), Waiting: c.asks.queue.Len(), WaitingMost: c.asks.most,
		Waited: c.asks.waited, Granted: c.asks.granted, TurnedAway: c.asks.turnedAway,
	}
}
