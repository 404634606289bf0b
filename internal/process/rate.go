package process

import "time"

// rateWindow is how far back a rate looks: long enough to be steady, short enough to show a change.
const rateWindow = 15 * time.Second

// rateStep is the least time between two samples.
const rateStep = 250 * time.Millisecond

// rate measures how fast a count grows.
type rate struct{ samples []sample }

type sample struct {
	at time.Time
	n  int64
}

// add notes a count.
func (r *rate) add(now time.Time, n int64) {
	if k := len(r.samples); k > 1 && now.Sub(r.samples[k-2].at) < rateStep {
		r.samples[k-1] = sample{now, n}
	} else {
		r.samples = append(r.samples, sample{now, n})
	}
	for len(r.samples) > 2 && now.Sub(r.samples[1].at) >= rateWindow {
		r.samples = r.samples[1:]
	}
}

// perSecond returns how much the count grew a second in the window, 0 if it is too early to say.
func (r *rate) perSecond(now time.Time) float64 {
	first, last := r.samples[0], r.samples[len(r.samples)-1]
	seconds := now.Sub(first.at).Seconds()
	if seconds < 1 {
		return 0
	}
	return float64(last.n-first.n) / seconds
}
