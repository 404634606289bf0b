package admission

import (
	"cmp"
	"slices"
)

// class is all shares of one class.
type class[T any] struct {
	rank    int
	shares  map[string]*Share[T]
	waiting []*Share[T] // those of which asks wait
	active  int         // shares of which asks wait or grants are open

	now  int64 // the clock: tokens served to an active share
	rest int64 // tokens served since the clock moved last
	most int64 // the most that was served to any share

	// shares that nobody has any more, but that are ahead of the clock: whoever leaves and comes
	// back is where it was
	left []*Share[T]
}

// mostLeft bounds what is remembered of keys that have left. The one with least is forgotten
// first: it has least to gain from coming back.
const mostLeft = 1024

// Share is the account of one key in one class.
type Share[T any] struct {
	class   *class[T]
	key     string
	holders int // who has joined and not left

	growing, fresh []*Ask[T] // in order of arrival
	open           int       // grants, and asks that wait
	served         int64     // tokens, set forward to the class's clock after idleness
	promised       int64     // tokens of open grants that are still to come
}

// Join returns the share of a key in a class, for one more that asks on its account until Leave.
func (q *Queue[T]) Join(rank int, key string) *Share[T] {
	c := &q.classes[rank]
	s := c.shares[key]
	if s == nil {
		s = &Share[T]{class: c, key: key}
		c.shares[key] = s
	} else if s.holders == 0 { // it is back
		c.left = slices.DeleteFunc(c.left, func(l *Share[T]) bool { return l == s })
	}
	s.holders++
	return s
}

// Leave ends what Join began. Who leaves has no ask and no grant.
func (q *Queue[T]) Leave(s *Share[T]) {
	if s.holders--; s.holders > 0 {
		return
	}
	s.class.left = append(s.class.left, s)
	s.class.tidy()
}

// Class returns the share's class.
func (s *Share[T]) Class() int { return s.class.rank }

// Share returns on whose account an ask waits.
func (a *Ask[T]) Share() *Share[T] { return a.share }

// Begin notes that a grant was given, for a number of tokens.
func (s *Share[T]) Begin(tokens int) {
	s.activate()
	s.promised += int64(tokens)
}

// Change notes that a grant is for n tokens more, or less.
func (s *Share[T]) Change(n int) { s.promised += int64(n) }

// Serve notes that tokens of an open grant were evaluated.
func (s *Share[T]) Serve(tokens int) {
	n, c := int64(tokens), s.class
	s.promised -= n
	s.served += n
	c.most = max(c.most, s.served)
	c.rest += n
	if by := c.rest / int64(c.active); by > 0 {
		c.now += by
		c.rest -= by * int64(c.active)
	}
}

// End notes that a grant has ended before some of its tokens.
func (s *Share[T]) End(tokens int) {
	s.promised -= int64(tokens)
	s.deactivate()
}

// had returns what counts against a share.
func (s *Share[T]) had() int64 { return s.served + s.promised }

func (s *Share[T]) first() *Ask[T] {
	if len(s.growing) > 0 {
		return s.growing[0]
	}
	return s.fresh[0]
}

func (s *Share[T]) activate() {
	if s.open++; s.open == 1 {
		s.served = max(s.served, s.class.now)
		s.class.active++
	}
}

func (s *Share[T]) deactivate() {
	if s.open--; s.open > 0 {
		return
	}
	c := s.class
	if c.active--; c.active == 0 { // nobody had to wait for anybody: all are equal again
		c.now, c.rest = max(c.now, c.most), 0
		c.tidy()
	}
}

// tidy forgets shares that have left and would be set to the clock anyway.
func (c *class[T]) tidy() {
	c.left = slices.DeleteFunc(c.left, func(s *Share[T]) bool {
		if s.served <= c.now {
			delete(c.shares, s.key)
			return true
		}
		return false
	})
	if len(c.left) > mostLeft {
		least := slices.MinFunc(c.left, func(a, b *Share[T]) int { return cmp.Compare(a.served, b.served) })
		c.left = slices.DeleteFunc(c.left, func(s *Share[T]) bool { return s == least })
		delete(c.shares, least.key)
	}
}
