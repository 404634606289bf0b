package readpool

import (
	"time"
)

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
