package analyse

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The pieces of a random time, compared with what each nanosecond of it is by the rule: the first
// claim that covers it, else the rest.
func TestDivideByNanosecond(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	where := []string{"", "a", "b"}
	for range 3000 {
		from := r.Int64N(40)
		to := from + r.Int64N(60)
		var claims []claim
		for range r.IntN(8) {
			at := r.Int64N(100)
			claims = append(claims, claim{span{at, at + r.Int64N(30)}, Cause(r.IntN(4)), where[r.IntN(3)]})
		}
		rest := claim{cause: Unexplained}
		pieces := divide(from, to, claims, rest, 3)
		at := from
		for i, p := range pieces {
			if p.FromNS != at || p.ToNS <= p.FromNS || p.Layer != 3 {
				t.Fatalf("[%d, %d) of %v: piece %d is %+v", from, to, claims, i, p)
			}
			if i > 0 && pieces[i-1].Cause == p.Cause && pieces[i-1].Where == p.Where {
				t.Fatalf("[%d, %d) of %v: pieces %d and %d are of the same kind", from, to, claims, i-1, i)
			}
			for ; at < p.ToNS; at++ {
				want := rest
				if k := slices.IndexFunc(claims, func(c claim) bool { return c.from <= at && at < c.to }); k >= 0 {
					want = claims[k]
				}
				if p.Cause != want.cause || p.Where != want.where {
					t.Fatalf("[%d, %d) of %v: %d is in %+v, want %+v", from, to, claims, at, p, want)
				}
			}
		}
		if at != to && from < to {
			t.Fatalf("[%d, %d) of %v: the pieces end at %d", from, to, claims, at)
		}
	}
}

// Unions and gaps of random spans, compared with each nanosecond.
func TestSpansByNanosecond(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		var spans []span
		var in [100]bool
		for range r.IntN(9) {
			at := r.Int64N(80)
			s := span{at, at + r.Int64N(20)}
			spans = append(spans, s)
			for i := s.from; i < s.to; i++ {
				in[i] = true
			}
		}
		all := union(slices.Clone(spans))
		from := r.Int64N(100)
		to := from + r.Int64N(101-from)
		var seen [100]int
		for _, s := range within(all, from, to) {
			for i := s.from; i < s.to; i++ {
				seen[i]++
			}
		}
		free := int64(0)
		for _, s := range gaps(all, from, to) {
			free += s.to - s.from
			for i := s.from; i < s.to; i++ {
				seen[i] += 10
			}
		}
		for i := range seen {
			want := 0
			if at := int64(i); at >= from && at < to {
				want = 10
				if in[i] {
					want = 1
				}
			}
			if seen[i] != want {
				t.Fatalf("%v within [%d, %d): %d is %d, want %d", spans, from, to, i, seen[i], want)
			}
		}
		if got := length(within(all, from, to)); got+free != to-from {
			t.Fatalf("%v within [%d, %d): %d and %d", spans, from, to, got, free)
		}
	}
}
