package bench

import "github.com/moeflux/moeflux-actor/model"

// multiplyAdds returns the multiply-adds of the weight matrices for a token that uses k experts a
// layer: of all layers, and of the head, which only rows with logits go through. Attention, the
// delta rule and everything else without weights are left out: they depend on the position and are
// small in comparison.
func multiplyAdds(m *model.Config, k int) (layers, head int64) {
	h := int64(m.HiddenSize)
	for _, l := range m.Layers {
		switch l.Mixer {
		case model.FullAttention, model.WindowAttention:
			layers += fullMultiplyAdds(m, m.Attention(l.Mixer))
			if l.Indexer == model.OwnIndexer { // queries and keys of what chooses blocks
				layers += h * int64((m.IndexNHeads+1)*m.IndexHeadDim)
			}
		case model.LinearAttention:
			// Queries, keys, values; the gate of the output and the output; decay and step of each
			// head.
			layers += h * int64(m.LinearConvDim()+2*m.LinearValueDim()+2*m.LinearNumValueHeads)
		case model.LatentAttention:
			layers += latentMultiplyAdds(m)
			if l.Indexer == model.OwnIndexer {
				layers += int64(m.IndexNHeads*m.IndexHeadDim*m.QLoraRank + (m.IndexHeadDim+m.IndexNHeads)*m.HiddenSize)
			}
		}
		if l.FFN == model.DenseMLP {
			layers += 3 * h * int64(m.IntermediateSize)
			continue
		}
		layers += h * int64(m.NumExperts+3*k*m.MoEIntermediateSize)
		switch m.SharedExpert {
		case model.SharedExpertGated:
			layers += h * int64(3*m.SharedExpertIntermediateSize+1)
		case model.SharedExpertUngated:
			layers += h * int64(3*m.SharedExpertIntermediateSize)
		}
	}
	return layers, h * int64(m.VocabSize)
}

func fullMultiplyAdds(m *model.Config, a model.Attention) int64 {
	queries := a.Heads * a.HeadDim
	switch {
	case m.AttnOutputGate:
		queries *= 2
	case m.HeadGate:
		queries += a.Heads
	}
	return int64(m.HiddenSize) * int64(queries+a.KeyDim()+a.ValuesDim()+a.Heads*a.ValueDim)
}

func latentMultiplyAdds(m *model.Config) int64 {
	h, heads := m.HiddenSize, m.NumAttentionHeads
	queries := heads * (m.QKNopeHeadDim + m.QKRopeHeadDim)
	q := h * queries
	if m.QLoraRank > 0 {
		q = m.QLoraRank * (h + queries)
	}
	return int64(q + h*m.LatentDim() + heads*(m.QKNopeHeadDim+m.VHeadDim)*m.KVLoraRank + h*heads*m.VHeadDim)
}
