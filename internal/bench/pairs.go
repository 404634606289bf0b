package bench

import "slices"

// Pairs runs a candidate and the defaults in n pairs, each first in turn, and judges them. run
// returns the seconds of a run. Where it fails, the pairs until then are judged, and its error is
// returned, too.
func Pairs(n int, run func(pair int, candidate bool) (seconds float64, err error)) (*SweepVerdict, error) {
	v := &SweepVerdict{Test: SweepTest}
	for k := range n {
		var p SweepPair
		order := []bool{true, false}
		if k%2 == 1 {
			slices.Reverse(order)
		}
		for _, candidate := range order {
			seconds, err := run(k, candidate)
			if err != nil {
				v.judge()
				return v, err
			}
			if candidate {
				p.Candidate = seconds
			} else {
				p.Defaults = seconds
			}
		}
		v.Pairs = append(v.Pairs, p)
	}
	return v, v.Judge()
}

// judge is Judge of pairs of which there may be none.
func (v *SweepVerdict) judge() {
	if len(v.Pairs) > 0 {
		_ = v.Judge() // finite numbers
	}
}
