package signedrank

import (
	"errors"
	"math"
	"testing"
)

// The critical values of the published tables for one-sided tests: with n pairs and a sum W of
// positive ranks up to the value, p is at most the level, and above it is not.
func TestCriticalValues(t *testing.T) {
	for _, c := range []struct {
		n, critical int // -1: no sum is significant
		level       float64
	}{
		{4, -1, 0.05}, {5, 0, 0.05}, {6, 2, 0.05}, {7, 3, 0.05}, {8, 5, 0.05}, {9, 8, 0.05}, {10, 10, 0.05}, {11, 13, 0.05}, {12, 17, 0.05}, {15, 30, 0.05},
		{6, 0, 0.025}, {7, 2, 0.025}, {8, 3, 0.025}, {9, 5, 0.025}, {10, 8, 0.025}, {12, 13, 0.025},
		{7, 0, 0.01}, {8, 1, 0.01}, {9, 3, 0.01}, {10, 5, 0.01},
	} {
		for w, significant := range map[int]bool{c.critical: true, c.critical + 1: false} {
			if w < 0 {
				continue
			}
			p, err := Less(withSum(c.n, w))
			if err != nil || (p <= c.level) != significant {
				t.Errorf("n=%d, W=%d: p=%g, %v; significant at %g: want %v", c.n, w, p, err, c.level, significant)
			}
		}
	}
}

// withSum returns n differences of sizes 1 to n whose positive ranks sum to w.
func withSum(n, w int) []float64 {
	x := make([]float64, n)
	for r := n; r >= 1; r-- {
		x[r-1] = -float64(r)
		if r <= w {
			x[r-1], w = float64(r), w-r
		}
	}
	return x
}

func TestLess(t *testing.T) {
	for _, c := range []struct {
		name string
		x    []float64
		want float64
	}{
		{"all faster", []float64{-1, -2, -3, -4, -5, -6}, 1.0 / 64},
		{"all slower", []float64{1, 2, 3}, 1},
		{"the least is slower", []float64{1, -2, -3, -4, -5}, 2.0 / 32},
		{"zeros count for nothing", []float64{0, -1, 0, -2}, 1.0 / 4},
		{"nothing but zeros", []float64{0, 0}, 1},
		// Equal sizes have rank 1.5: of the four sums 0, 1.5, 1.5 and 3, three are at most 1.5.
		{"ties", []float64{1, -1}, 3.0 / 4},
		{"scale does not matter", []float64{-1e-9, -2e9, 3e-12}, 2.0 / 8},
	} {
		if got, err := Less(c.x); err != nil || got != c.want {
			t.Errorf("%s: got %g, %v; want %g", c.name, got, err, c.want)
		}
	}
	for _, x := range [][]float64{nil, make([]float64, MaxPairs+1), {math.NaN()}, {math.Inf(1)}} {
		if _, err := Less(x); !errors.Is(err, ErrPairs) {
			t.Errorf("%v: error %v, want %v", x, err, ErrPairs)
		}
	}
}
