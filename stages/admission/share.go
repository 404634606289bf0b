package admission

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/stages/fair"
)

// class is all shares of one class.
type class[T any] struct {
	rank    int
	shares  map[string]*Share[T]
	waiting []*Share[T] // those of which asks wait
	clock   fair.Clock  // of tokens; a share of which asks wait or grants are open is active

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
	served         fair.Account
	promised       int64 // tokens of open grants that are still to come
}

// Join returns the share of a key in a class, for one more that asks on its account until Leave.
// The share has the weight that was given last.
func (q *Queue[T]) Join(rank int, key string, weight int) *Share[T] {
	c := &q.classes[rank]
	s := c.shares[key]
	if s == nil {
		s = &Share[T]{class: c, key: key}
		c.shares[key] = s
	} else if s.holders == 0 { // it is back
		c.left = slices.DeleteFunc(c.left, func(l *Share[T]) bool { return l == s })
	}
	s.holders++
	c.clock.Weigh(&s.served, weight)
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

// Key returns whose share it is.
func (s *Share[T]) Key() string { return s.key }

// Weight returns the share's weight.
func (s *Share[T]) Weight() int { return s.served.Weight() }

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
	s.promised -= int64(tokens)
	s.class.clock.Serve(&s.served, int64(tokens))
}

// End notes that a grant has ended before some of its tokens.
func (s *Share[T]) End(tokens int) {
	s.promised -= int64(tokens)
	s.deactivate()
}

// had returns what counts against a share, by its weight.
func (s *Share[T]) had() int64 { return s.served.With(s.promised) }

func (s *Share[T]) first() *Ask[T] {
	if len(s.growing) > 0 {
		return s.growing[0]
	}
	return s.fresh[0]
}

func (s *Share[T]) activate() { s.class.clock.Open(&s.served) }

func (s *Share[T]) deactivate() {
	if s.class.clock.Close(&s.served) {
		s.class.tidy()
	}
}

// tidy forgets shares that have left and would be set to the clock anyway.
func (c *class[T]) tidy() {
	c.left = slices.DeleteFunc(c.left, func(s *Share[T]) bool {
		if c.clock.Ahead(&s.served) {
			return false
		}
		delete(c.shares, s.key)
		return true
	})
	if len(c.left) > mostLeft {
		least := slices.MinFunc(c.left, func(a, b *Share[T]) int { return cmp.Compare(a.served.Had(), b.served.Had()) })
		c.left = slices.DeleteFunc(c.left, func(s *Share[T]) bool { return s == least })
		delete(c.shares, least.key)
	}
}
