package model

import "slices"

// Part returns the configuration of the layers from first to before end, as if the model had no
// others: what is kept of their positions, and where, follows from it. Mixers and indexers are
// counted within the part, and layers with experts as in the model.
func (c *Config) Part(first, end int) *Config {
	part := *c
	part.Layers = slices.Clone(c.Layers[first:end])
	var mixers [numMixers]int
	indexers := 0
	for i := range part.Layers {
		l := &part.Layers[i]
		l.MixerIndex, l.IndexerIndex = mixers[l.Mixer], indexers
		mixers[l.Mixer]++
		if l.Indexer == OwnIndexer {
			indexers++
		}
	}
	return &part
}
