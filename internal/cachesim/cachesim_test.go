package cachesim

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestByHand compares two caches with results worked out on paper.
func TestByHand(t *testing.T) {
	visits := []Visit{{1}, {2}, {3}, {1}, {2}, {1}}
	for _, tc := range []struct {
		name  string
		cache func([]Visit, int) (Misses, error)
		want  Misses
	}{
		// With two slots, 3 takes the place of 2, whose next use is farther away than that of 1.
		// Later 2 takes the place of 3.
		{"optimum", Optimum, Misses{1, 1, 1, 0, 1, 0}},
		{"lru", LRU, Misses{1, 1, 1, 1, 1, 0}},
	} {
		got, err := tc.cache(visits, 2)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, %v, want %v", tc.name, got, err, tc.want)
		}
		if got.Sum(3) != tc.want[3]+tc.want[4]+tc.want[5] {
			t.Errorf("%s: the sum from visit 3 is %d", tc.name, got.Sum(3))
		}
	}
}

// least returns the fewest misses that any choice of evictions leads to.
func least(visits []Visit, slots int, held []int32) int {
	if len(visits) == 0 {
		return 0
	}
	for _, k := range visits[0] {
		if slices.Contains(held, k) {
			continue
		}
		if len(held) < slots {
			return 1 + least(visits, slots, append(slices.Clone(held), k))
		}
		best := 1 << 30
		for i, out := range held {
			if slices.Contains(visits[0], out) {
				continue
			}
			rest := slices.Clone(held)
			rest[i] = k
			best = min(best, 1+least(visits, slots, rest))
		}
		return best
	}
	return least(visits[1:], slots, held)
}

// TestOptimumIsLeast tries all choices on short random visits: no choice, and not LRU, has fewer
// misses.
func TestOptimumIsLeast(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		slots := 2 + r.IntN(3)
		var visits []Visit
		for range 7 {
			var v Visit
			for len(v) < 1+r.IntN(2) {
				if k := r.Int32N(6); !slices.Contains(v, k) {
					v = append(v, k)
				}
			}
			visits = append(visits, v)
		}
		best, err := Optimum(visits, slots)
		if err != nil {
			t.Fatal(err)
		}
		recent, err := LRU(visits, slots)
		if err != nil {
			t.Fatal(err)
		}
		if want := least(visits, slots, nil); best.Sum(0) != want || recent.Sum(0) < want {
			t.Errorf("case %d, %d slots, %v: optimum %d misses, LRU %d, the least is %d", n, slots, visits, best.Sum(0), recent.Sum(0), want)
		}
	}
}

func TestRefused(t *testing.T) {
	if _, err := Optimum([]Visit{{1, 2, 3}}, 2); err == nil {
		t.Error("three experts in two slots: no error")
	}
	if _, err := LRU([]Visit{{1, 1}}, 2); err == nil {
		t.Error("an expert twice: no error")
	}
}
