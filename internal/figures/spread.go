package figures

import (
	"slices"
	"time"
)

// Spread is one figure over all runs.
type Spread struct {
	Median float64 `json:"median"` // the mean of the middle two of an even number
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf returns the spread of one figure or more.
func SpreadOf(x []float64) Spread {
	x = slices.Sorted(slices.Values(x))
	n := len(x)
	return Spread{Median: (x[(n-1)/2] + x[n/2]) / 2, Min: x[0], Max: x[n-1]}
}

// Percentile returns the value that a share of all is at most; 0 of none.
func Percentile(all []float64, share float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// Speed returns the seconds and tokens a second between two times; zeros if one is missing.
func Speed(tokens int, from, to time.Time) (seconds, perSecond float64) {
	if from.IsZero() || to.IsZero() || !to.After(from) {
		return 0, 0
	}
	seconds = to.Sub(from).Seconds()
	return seconds, float64(tokens) / seconds
}
