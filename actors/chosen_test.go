package actors_test

import (
	"slices"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// choices wants the positions that each layer of a model with indexers attends to.
func choices(e *actors.Engine) (all []actors.Want) {
	if e.Model().IndexTopK == 0 {
		return nil
	}
	for i := range e.Model().Layers {
		all = append(all, actors.Want{Quantity: stages.DumpPositions, Layer: i})
	}
	return all
}

// samePositions wants the positions that the reference lists under a name for each indexer, from
// row first on, also in the layers that share a choice.
func (c *comparer) samePositions(p string, got []actors.Tensor, ref *fixtures.Numbers, name string, first, rows int) {
	t := c.t
	t.Helper()
	for i := range c.layers {
		if c.layers[i].Indexer == model.NoIndexer {
			continue
		}
		want, shape := ref.I32(name)
		all, k, own := shape[1], shape[2], c.layers[i].IndexerIndex
		if c.layers[i].Indexer == model.LowerIndexer {
			own--
		}
		x := stages.FindTensor(got, actors.Want{Quantity: stages.DumpPositions, Layer: i})
		if x == nil {
			t.Fatalf("%s: no positions of layer %d", p, i)
		}
		if !slices.Equal(x.Ints, want[(own*all+first)*k:(own*all+first+rows)*k]) {
			t.Fatalf("%s: layer %d attends from row %d on to %v, want %v", p, i, first, x.Ints, want[(own*all+first)*k:(own*all+first+rows)*k])
		}
	}
}
