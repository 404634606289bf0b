package actors

import (
	"errors"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// Probe says which parts of the model a chunk computes, and on which numbers.
type Probe = stages.Probe

// checkProbe reports a probe of a chunk of n tokens that the model does not fit.
func checkProbe(p *Probe, e *Engine, n int) error {
	if p == nil {
		return nil
	}
	m, k := e.Model(), e.Info().TopK
	dim, layers := m.HiddenSize, len(m.Layers)
	given := len(p.Given) / dim
	ascending := func(list []int, last int) bool {
		return slices.IsSorted(list) && len(slices.Compact(slices.Clone(list))) == len(list) && (len(list) == 0 || list[0] >= 0 && list[len(list)-1] <= last)
	}
	switch {
	case !ascending(p.Layers, layers-1) || !ascending(p.At, layers):
		return fmt.Errorf("actors: a probe of layers %v with numbers for %v, want ascending layers of %d", p.Layers, p.At, layers)
	case len(p.Given)%dim != 0 || given > n || (len(p.At) > 0) != (given > 0):
		return fmt.Errorf("actors: a probe gives %d numbers to layers %v, want %d for each of at most %d rows", len(p.Given), p.At, dim, n)
	case p.Experts && given != n:
		return fmt.Errorf("actors: a probe of experts gives %d rows of %d", given, n)
	case len(p.Picks) != len(p.Weights) || p.Picks != nil && (!p.Experts || len(p.Picks) != n*k):
		return fmt.Errorf("actors: a probe gives %d picks and %d weights, want %d for each of %d rows, with Experts", len(p.Picks), len(p.Weights), k, n)
	}
	for _, pick := range p.Picks {
		if pick < 0 || int(pick) >= m.NumExperts {
			return fmt.Errorf("actors: a probe picks expert %d of %d", pick, m.NumExperts)
		}
	}
	for _, l := range p.At {
		if l < layers && p.Picks != nil && m.Layers[l].FFN == model.DenseMLP {
			return errors.New("actors: a probe picks experts of a layer that has none")
		}
		if l < layers && !p.Runs(l) {
			return fmt.Errorf("actors: a probe gives numbers to layer %d, which it leaves out", l)
		}
	}
	return nil
}
