// Package signedrank tests whether paired measurements differ: Wilcoxon's signed-rank test with its
// exact distribution, which needs no assumption about the noise but that it is symmetric.
package signedrank

import (
	"errors"
	"math"
	"slices"
)

// MaxPairs is the most pairs that Less takes.
const MaxPairs = 20

// ErrPairs reports a number of pairs that Less does not take, or a difference that is not a number.
var ErrPairs = errors.New("signedrank: want 1 to 20 pairs of finite numbers")

// Less returns the one-sided p-value of the hypothesis that differences tend to be below 0: the
// probability that differences as large as these, each with a random sign, sum up to no more in
// favour of positive ones.
//
// Differences of 0 are dropped. The others are ranked by size, equal ones with the mean of their
// ranks; W is the sum of the ranks of the positive ones, and the p-value is the share of all 2^n
// choices of signs whose sum is at most W. Without a difference that is not 0 it is 1. With n
// differences the least p-value is 2^-n, so 5 are the fewest that can be significant at 5 %.
func Less(differences []float64) (float64, error) {
	if len(differences) == 0 || len(differences) > MaxPairs {
		return 0, ErrPairs
	}
	var x []float64
	for _, d := range differences {
		if math.IsNaN(d) || math.IsInf(d, 0) {
			return 0, ErrPairs
		}
		if d != 0 {
			x = append(x, d)
		}
	}
	ranks := doubledRanks(x)
	w := 0
	for i, d := range x {
		if d > 0 {
			w += ranks[i]
		}
	}
	few := 0
	for sum, n := range waysTo(ranks) {
		if sum <= w {
			few += n
		}
	}
	return float64(few) / float64(int(1)<<len(x)), nil
}

// waysTo returns how many choices of some of the ranks have each sum.
func waysTo(ranks []int) []int {
	ways := []int{1}
	for _, r := range ranks {
		more := append(ways, make([]int, r)...)
		for sum := len(more) - 1; sum >= r; sum-- {
			more[sum] += more[sum-r]
		}
		ways = more
	}
	return ways
}

// doubledRanks returns twice the rank of each value by size, so that the means of equal ones are
// whole numbers.
func doubledRanks(x []float64) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch d := math.Abs(x[a]) - math.Abs(x[b]); {
		case d < 0:
			return -1
		case d > 0:
			return 1
		}
		return 0
	})
	ranks := make([]int, len(x))
	for from := 0; from < len(x); {
		to := from + 1
		for to < len(x) && math.Abs(x[order[to]]) == math.Abs(x[order[from]]) {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = from + 1 + to // the sum of the first and the last rank
		}
		from = to
	}
	return ranks
}
