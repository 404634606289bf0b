package tune

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/internal/tuned"
)

// What a replay must promise: less is within its error, or not worth a flag.
const (
	leastSaving = 0.01  // of the time, to be tried
	leastShare  = 0.005 // by one setting, to be a part of a combination
)

// A predictor says what share of the time settings save; ok is false if it cannot tell.
type predictor func(tuned.Settings) (saving float64, ok bool)

// proposer proposes by replay.
type proposer struct {
	predict predictor
	over    func() bool // no more time for replays
	tried   map[tuned.Settings]float64
	order   []tuned.Settings // of tried
}

// propose returns what to measure, the most promising first: the best combination that a walk from
// setting to setting finds, the best of each setting by itself, and then what the predictor knows
// little or nothing of. Without a predictor that is everything. A setting may be there twice. tried
// is how many settings were predicted.
func propose(all []axis, predict predictor, over func() bool) (candidates []*Candidate, tried int) {
	p := &proposer{predict: predict, over: over, tried: make(map[tuned.Settings]float64)}
	if predict != nil {
		p.walk(all)
		for _, s := range p.best(all) {
			candidates = append(candidates, &Candidate{Settings: s, Predicted: new(p.tried[s])})
		}
	}
	for _, a := range all {
		values := a.values
		if a.replayed && len(p.tried) > 0 {
			values = a.unsure
		}
		for _, s := range values {
			c := &Candidate{Settings: s}
			if saving, ok := p.tried[s]; ok {
				c.Predicted = &saving
			}
			candidates = append(candidates, c)
		}
	}
	return candidates, len(p.tried)
}

// saves predicts settings once.
func (p *proposer) saves(s tuned.Settings) (float64, bool) {
	if saving, ok := p.tried[s]; ok {
		return saving, true
	}
	if p.over() {
		return 0, false
	}
	saving, ok := p.predict(s)
	if ok {
		p.tried[s], p.order = saving, append(p.order, s)
	}
	return saving, ok
}

// walk tries each value of each setting beside the best found so far, twice.
func (p *proposer) walk(all []axis) {
	var at tuned.Settings
	most := 0.0
	for range 2 {
		from := at
		for _, a := range all {
			if !a.replayed {
				continue
			}
			for _, v := range a.values {
				p.saves(v) // by itself
				s := with(at, v)
				if saving, ok := p.saves(s); ok && saving > most+leastShare {
					at, most = s, saving
				}
			}
		}
		if at == from {
			return
		}
	}
}

// best returns the settings that save enough: the best combination without what adds nothing to it,
// and the best value of each setting.
func (p *proposer) best(all []axis) (settings []tuned.Settings) {
	add := func(s tuned.Settings) {
		if saving, ok := p.tried[s]; ok && saving >= leastSaving && !slices.Contains(settings, s) {
			settings = append(settings, s)
		}
	}
	add(p.simplest(all, p.most()))
	singles := len(settings)
	for _, a := range all {
		var one tuned.Settings
		for _, v := range a.values {
			if p.tried[v] > p.tried[one] {
				one = v
			}
		}
		add(one)
	}
	slices.SortStableFunc(settings[singles:], func(a, b tuned.Settings) int { return cmp.Compare(p.tried[b], p.tried[a]) })
	return settings
}

// most returns the settings that save most; of equal ones those that were tried first.
func (p *proposer) most() (best tuned.Settings) {
	for _, s := range p.order {
		if p.tried[s] > p.tried[best] {
			best = s
		}
	}
	return best
}

// simplest leaves out what saves next to nothing.
func (p *proposer) simplest(all []axis, s tuned.Settings) tuned.Settings {
	for _, a := range all {
		less := without(s, a.values[0])
		if less == s || less == (tuned.Settings{}) {
			continue
		}
		if saving, ok := p.saves(less); ok && saving > p.tried[s]-leastShare {
			s = less
		}
	}
	return s
}
