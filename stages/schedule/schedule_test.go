package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// chunk is a request of the tests.
type chunk struct {
	id    int
	left  int
	alone bool
}

func (c *chunk) Left() int   { return c.left }
func (c *chunk) Alone() bool { return c.alone }

func (c *chunk) String() string { return fmt.Sprintf("%d:%d", c.id, c.left) }

// naive divides a step's room by definition, one row at a time: the first comers get what they
// want, but a prompt (more than a row) beyond its first row leaves a row to each single row after
// it. A request that is to be alone shares with nobody.
func naive(ready []*chunk, rows int) (shares []schedule.Share[*chunk]) {
	for i, r := range ready {
		later := 0
		for _, q := range ready[i:] {
			if q.left == 1 && q != r {
				later++
			}
		}
		taken := 0
		for _, s := range shares {
			taken += s.Rows
		}
		n := 0
		for n < r.left && taken+n < rows && (n == 0 || taken+n < rows-later) {
			n++
		}
		if n == 0 || len(shares) > 0 && (r.alone || shares[0].Request.alone) {
			continue
		}
		shares = append(shares, schedule.Share[*chunk]{Request: r, Rows: n})
	}
	return shares
}

func TestSharesAreThoseOfTheDefinition(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		rows := 1 + r.IntN(12)
		s := schedule.New[*chunk](rows)
		var ready []*chunk
		for round := range 20 {
			for range r.IntN(4) {
				c := &chunk{id: 100*round + len(ready), left: 1, alone: r.IntN(12) == 0}
				if r.IntN(2) == 0 {
					c.left += r.IntN(20)
				}
				at := len(ready)
				if r.IntN(5) == 0 {
					at = r.IntN(3)
					s.AddAt(at, c)
				} else {
					s.Add(c)
				}
				ready = slices.Insert(ready, min(at, len(ready)), c)
			}
			if len(ready) > 0 && r.IntN(5) == 0 {
				i := r.IntN(len(ready))
				s.Remove(ready[i])
				ready = slices.Delete(ready, i, i+1)
			}
			want := naive(ready, rows)
			got, wait := s.Next()
			if !slices.Equal(got, want) || wait != 0 {
				t.Fatalf("seed %d: of %v in %d rows: %v, want %v", seed, ready, rows, got, want)
			}
			for _, sh := range want {
				ready = slices.DeleteFunc(ready, func(c *chunk) bool { return c == sh.Request })
			}
			for _, sh := range want {
				if sh.Request.left -= sh.Rows; sh.Request.left > 0 {
					s.Add(sh.Request)
					ready = append(ready, sh.Request)
				}
			}
			if s.Ready() != len(ready) {
				t.Fatalf("seed %d: %d are ready, want %d", seed, s.Ready(), len(ready))
			}
		}
	}
}

// TestWaiting tells when a step is held back, and until when.
func TestWaiting(t *testing.T) {
	one, prompt := &chunk{id: 1, left: 1}, &chunk{id: 2, left: 4}
	next := func(t *testing.T, s *schedule.Schedule[*chunk], shares int, round uint64) {
		t.Helper()
		if got, r := s.Next(); len(got) != shares || r != round {
			t.Fatalf("%v and round %d, want %d shares and round %d", got, r, shares, round)
		}
	}
	t.Run("nothing to wait with", func(t *testing.T) {
		s := schedule.New[*chunk](4)
		s.Expect(7)
		next(t, &s, 0, 0)
	})
	t.Run("until the last of them is back", func(t *testing.T) {
		s := schedule.New[*chunk](4)
		s.Expect(7)
		s.Expect(8)
		s.Expect(8)
		s.Add(one)
		next(t, &s, 0, 1)
		next(t, &s, 0, 0)
		s.Unexpect(7)
		next(t, &s, 0, 0)
		s.Unexpect(8)
		next(t, &s, 1, 0)
	})
	t.Run("until time is over", func(t *testing.T) {
		s := schedule.New[*chunk](4)
		s.Expect(7)
		s.Add(one)
		next(t, &s, 0, 1)
		s.WaitOver(1)
		if s.Expected() != 0 || s.Expects(7) {
			t.Fatal("somebody is still expected")
		}
		next(t, &s, 1, 0)
	})
	t.Run("an earlier wait says nothing", func(t *testing.T) {
		s := schedule.New[*chunk](4)
		s.Expect(7)
		s.Add(one)
		next(t, &s, 0, 1)
		s.Unexpect(7)
		next(t, &s, 1, 0)
		s.Expect(7)
		s.WaitOver(1)
		s.Add(one)
		next(t, &s, 0, 2)
		s.WaitOver(1)
		next(t, &s, 0, 0)
	})
	t.Run("not with a full step", func(t *testing.T) {
		s := schedule.New[*chunk](4)
		s.Expect(7)
		s.Add(prompt)
		next(t, &s, 1, 0)
	})
}

func TestNothingIsAllocated(t *testing.T) {
	s := schedule.New[*chunk](4)
	c := &chunk{id: 1, left: 1}
	turn := func() {
		s.Expect(1)
		s.Unexpect(1)
		s.Add(c)
		if shares, _ := s.Next(); len(shares) != 1 {
			t.Fatal("no share")
		}
	}
	turn()
	if n := testing.AllocsPerRun(100, turn); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}
