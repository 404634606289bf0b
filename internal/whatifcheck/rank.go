package main

import (
	"cmp"
	"math"
	"slices"
)

// ranked is how well predictions put settings in order.
type ranked struct {
	// correlation is Spearman's, of predictions with medians.
	correlation float64
	// again is that of one turn with the medians of the other turns, on average: what another
	// measurement of the very same settings would score.
	again float64
	// spread is that of a run, as a share: the standard deviation within settings.
	spread float64
	// pairs is how many pairs of settings there are, clear how many differ by more than twice the
	// spread, and right how many of these were predicted in the measured order.
	pairs, clear, right int
}

// rank compares predicted speeds with measured ones, [setting][turn].
func rank(predicted []float64, measured [][]float64) (r ranked) {
	middle := make([]float64, len(measured))
	for i, runs := range measured {
		middle[i] = median(runs)
	}
	r.correlation, r.again, r.spread = correlation(predicted, middle), again(measured), spread(measured)
	for i := range middle {
		for j := range i {
			r.pairs++
			if d := math.Log(middle[i] / middle[j]); math.Abs(d) > 2*r.spread {
				r.clear++
				if (predicted[i] > predicted[j]) == (d > 0) && predicted[i] != predicted[j] {
					r.right++
				}
			}
		}
	}
	return r
}

// again returns how well one turn tells the order of the others.
func again(measured [][]float64) float64 {
	turns, sum := len(measured[0]), 0.0
	if turns < 2 {
		return math.NaN()
	}
	for t := range turns {
		var one, others []float64
		for _, runs := range measured {
			one, others = append(one, runs[t]), append(others, median(slices.Delete(slices.Clone(runs), t, t+1)))
		}
		sum += correlation(one, others)
	}
	return sum / float64(turns)
}

// spread returns the standard deviation of the logarithms of speeds within settings.
func spread(measured [][]float64) float64 {
	sum, n := 0.0, 0
	for _, runs := range measured {
		mean := 0.0
		for _, v := range runs {
			mean += math.Log(v) / float64(len(runs))
		}
		for _, v := range runs {
			sum += (math.Log(v) - mean) * (math.Log(v) - mean)
		}
		n += len(runs) - 1
	}
	if n == 0 {
		return math.NaN()
	}
	return math.Sqrt(sum / float64(n))
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// correlation is Spearman's of ranks.
func correlation(a, b []float64) float64 {
	x, y := ranks(a), ranks(b)
	var sx, sy, sxx, syy, sxy float64
	for i := range x {
		sx, sy, sxx, syy, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], syy+y[i]*y[i], sxy+x[i]*y[i]
	}
	n := float64(len(x))
	return (n*sxy - sx*sy) / math.Sqrt((n*sxx-sx*sx)*(n*syy-sy*sy))
}

// ranks returns the rank of each value, equal ones with the mean of theirs.
func ranks(v []float64) []float64 {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	out := make([]float64, len(v))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && v[order[j]] == v[order[i]] {
			j++
		}
		for k := i; k < j; k++ {
			out[order[k]] = float64(i+j-1) / 2
		}
		i = j
	}
	return out
}
