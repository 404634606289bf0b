package model

import (
	"slices"
	"testing"
)

// TestPart cuts a configuration: mixers and indexers are counted anew, layers with experts are not.
func TestPart(t *testing.T) {
	c := &Config{HiddenSize: 8, Layers: []Layer{
		{Mixer: LinearAttention, FFN: DenseMLP},
		{Mixer: FullAttention, FFN: MixtureOfExperts, Indexer: OwnIndexer},
		{Mixer: LinearAttention, MixerIndex: 1, FFN: MixtureOfExperts, MoEIndex: 1, IndexerIndex: 1},
		{Mixer: FullAttention, MixerIndex: 1, FFN: MixtureOfExperts, MoEIndex: 2, Indexer: OwnIndexer, IndexerIndex: 1},
	}}
	before := slices.Clone(c.Layers)
	if whole := c.Part(0, 4); !slices.Equal(whole.Layers, before) || whole.HiddenSize != 8 {
		t.Errorf("all layers: %+v", whole)
	}
	want := []Layer{
		{Mixer: LinearAttention, FFN: MixtureOfExperts, MoEIndex: 1},
		{Mixer: FullAttention, FFN: MixtureOfExperts, MoEIndex: 2, Indexer: OwnIndexer},
	}
	if p := c.Part(2, 4); !slices.Equal(p.Layers, want) || p.Count(FullAttention) != 1 || p.Indexers() != 1 {
		t.Errorf("the last two layers: %+v", p.Layers)
	}
	if !slices.Equal(c.Layers, before) {
		t.Error("the configuration has changed")
	}
}
