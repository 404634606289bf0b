package admission

import (
	"cmp"
	"slices"
)

// Queue is asks that wait, and the shares of all who may ask. T is what an ask is for.
type Queue[T any] struct {
	classes []class[T] // the highest last
	most    int        // asks that may wait, those that grow not counted
	fresh   int        // asks that do wait, those that grow not counted
	waiting int        // all
	asks    uint64     // so far
}

// Ask is a wish that waits.
type Ask[T any] struct {
	For   T
	share *Share[T]
	grow  bool
	seen  uint64 // which ask it is, in order of arrival
}

// New returns an empty queue for a number of classes, in which most asks may wait.
func New[T any](classes, most int) *Queue[T] {
	q := &Queue[T]{classes: make([]class[T], classes), most: most}
	for i := range q.classes {
		q.classes[i] = class[T]{rank: i, shares: make(map[string]*Share[T])}
	}
	return q
}

// Len returns how many asks wait.
func (q *Queue[T]) Len() int { return q.waiting }

// Grow adds an ask for a text that has memory and needs more. It goes before those of its class
// that have none.
func (q *Queue[T]) Grow(s *Share[T], of T) *Ask[T] {
	a := q.ask(s, of)
	a.grow = true
	s.growing = append(s.growing, a)
	return a
}

// Add adds an ask for a text that has no memory yet. If the queue is full, one ask has to go, which
// is returned: of the lowest class, of the key of which most wait there for its weight, the newest.
// It may be the one that was added.
func (q *Queue[T]) Add(s *Share[T], of T) (added, refused *Ask[T]) {
	a := q.ask(s, of)
	s.fresh = append(s.fresh, a)
	q.fresh++
	if q.fresh <= q.most {
		return a, nil
	}
	refused = q.surplus()
	q.Withdraw(refused)
	return a, refused
}

func (q *Queue[T]) ask(s *Share[T], of T) *Ask[T] {
	q.asks++
	q.waiting++
	if len(s.growing)+len(s.fresh) == 0 {
		s.class.waiting = append(s.class.waiting, s)
	}
	s.activate()
	return &Ask[T]{For: of, share: s, seen: q.asks}
}

// surplus returns the ask that has to go: of the lowest class in which any waits, the last one of
// the line that is longest for its key's weight; of equally long ones that of the newest ask.
func (q *Queue[T]) surplus() (last *Ask[T]) {
	for i := range q.classes {
		for _, s := range q.classes[i].waiting {
			if n := len(s.fresh); n > 0 && (last == nil || s.longer(last.share)) {
				last = s.fresh[n-1]
			}
		}
		if last != nil {
			break
		}
	}
	return last
}

// longer reports whether a share's line goes before another's where an ask has to go.
func (s *Share[T]) longer(than *Share[T]) bool {
	n, m := len(s.fresh), len(than.fresh)
	return cmp.Or(cmp.Compare(n*than.Weight(), m*s.Weight()), cmp.Compare(s.fresh[n-1].seen, than.fresh[m-1].seen)) > 0
}

// Withdraw takes an ask out of the queue, because it is granted or not wanted any more.
func (q *Queue[T]) Withdraw(a *Ask[T]) {
	s := a.share
	line := &s.fresh
	if a.grow {
		line = &s.growing
	}
	i := slices.Index(*line, a)
	if i < 0 {
		return
	}
	*line = slices.Delete(*line, i, i+1)
	q.waiting--
	if !a.grow {
		q.fresh--
	}
	if len(s.growing)+len(s.fresh) == 0 {
		i := slices.Index(s.class.waiting, s)
		s.class.waiting = slices.Delete(s.class.waiting, i, i+1)
	}
	s.deactivate()
}

// Head returns the ask that is next, or nil if none waits.
func (q *Queue[T]) Head() *Ask[T] {
	for i := len(q.classes) - 1; i >= 0; i-- {
		var head *Ask[T]
		for _, s := range q.classes[i].waiting {
			if a := s.first(); head == nil || a.before(head) {
				head = a
			}
		}
		if head != nil {
			return head
		}
	}
	return nil
}

// before reports whether a goes before b, of the same class.
func (a *Ask[T]) before(b *Ask[T]) bool {
	switch had, other := a.share.had(), b.share.had(); {
	case a.grow != b.grow:
		return a.grow
	case had != other:
		return had < other
	}
	return a.seen < b.seen
}

// All calls f for each ask that waits, the oldest of each share's line first, until f returns
// false. f must not change the queue.
func (q *Queue[T]) All(f func(*Ask[T]) bool) {
	for i := len(q.classes) - 1; i >= 0; i-- {
		for _, s := range q.classes[i].waiting {
			for _, line := range [2][]*Ask[T]{s.growing, s.fresh} {
				for _, a := range line {
					if !f(a) {
						return
					}
				}
			}
		}
	}
}
