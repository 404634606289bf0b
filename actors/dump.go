package actors

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// Want names a quantity of a layer, Tensor is its numbers. The quantities are constants of package
// stages.
type (
	Want   = stages.Want
	Tensor = stages.Tensor
)

// WantsOf returns everything that the given layers of a model can show.
func WantsOf(m *model.Config, layers []int) []Want { return stages.WantsOf(m, layers) }

// wants returns all that a chunk wants of layers, in order; nil if that is nothing.
func (c *Chunk) wants(e *Engine) ([]Want, error) {
	if !c.Hidden && !c.Routing && len(c.Dump) == 0 {
		return nil, nil
	}
	m, topK := e.Model(), e.Info().TopK
	for _, w := range c.Dump {
		if w.Quantity.Shape(m, w.Layer, topK) == nil {
			return nil, fmt.Errorf("actors: layer %d has no %v", w.Layer, w.Quantity)
		}
	}
	all := append([]Want(nil), c.Dump...)
	if c.Hidden {
		for layer := range len(m.Layers) + 1 {
			all = append(all, Want{Quantity: stages.DumpInput, Layer: layer})
		}
	}
	if c.Routing {
		for _, layer := range m.MoELayers() {
			all = append(all, Want{Quantity: stages.DumpPicks, Layer: layer}, Want{Quantity: stages.DumpWeights, Layer: layer})
		}
	}
	return stages.SortWants(all), nil
}

// collect fills in what a chunk wants by another name than Dump.
func (r *Evaluated) collect(c *Chunk) {
	for i := range r.Dump {
		switch t := &r.Dump[i]; {
		case c.Hidden && t.Quantity == stages.DumpInput:
			r.Hidden = append(r.Hidden, t.Floats...)
		case c.Routing && t.Quantity == stages.DumpPicks:
			r.Picks = append(r.Picks, t.Ints...)
		case c.Routing && t.Quantity == stages.DumpWeights:
			r.Weights = append(r.Weights, t.Floats...)
		}
	}
}
