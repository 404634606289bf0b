package sample

import (
	"math"
	"slices"
)

// Best is the largest logits of a token, of equal ones the lower ids: in order, NaN before
// everything, as gpu.TopK finds them.
type Best struct {
	Logits []float32
	Tokens []int32
}

// Of reports whether the n largest logits are all that o looks at: nothing changes logits before
// they are compared, and no more than n may be drawn.
func (o Options) Of(n int) bool {
	return n > 0 && !o.repeats() && !o.counts() && len(o.LogitBias) == 0 && (o.Temperature == 0 || 0 < o.TopK && o.TopK <= n)
}

// NextOf is Next for options that look at the largest logits alone (Options.Of), with the same
// choices. The text does not matter to them. If several logits are invalid it may name another one
// than Next does.
func (s *Sampler) NextOf(b Best) (int32, error) {
	if s.invalid != nil {
		return 0, s.invalid
	}
	if err := checkLogit(int(b.Tokens[0]), b.Logits[0]); err != nil {
		return 0, err
	}
	if math.IsInf(float64(b.Logits[0]), -1) {
		return 0, ErrNoFiniteLogit
	}
	if s.opts.Temperature == 0 {
		return b.Tokens[0], nil
	}
	s.cands = s.cands[:0]
	for i, l := range b.Logits[:min(s.opts.TopK, len(b.Logits))] {
		if !math.IsInf(float64(l), -1) {
			s.cands = append(s.cands, candidate{logit: float64(l), token: b.Tokens[i]})
		}
	}
	return s.draw(float64(b.Logits[0])), nil
}

// draw draws one of the candidates that the cuts leave; best is the largest logit.
func (s *Sampler) draw(best float64) int32 {
	s.left = cut(s.cands, best, &s.opts)
	return s.pick(s.left)
}

// pick draws one of the candidates by their weights.
func (s *Sampler) pick(c []candidate) int32 {
	u := s.rng.Float64() * total(c)
	for _, x := range c {
		if u -= x.weight; u < 0 {
			return x.token
		}
	}
	return c[len(c)-1].token // rounding used u up
}

// inOrder brings candidates into the order in which a device finds them, so that what is drawn does
// not depend on where it was computed.
func inOrder(c []candidate) []candidate {
	slices.SortFunc(c, func(a, b candidate) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return c
}
