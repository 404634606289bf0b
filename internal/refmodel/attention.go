package refmodel

import (
	"math"

	"github.com/moeflux/moeflux-actor/model"
)

// fullAttention is softmax attention with grouped heads.
type fullAttention struct {
	cfg                 *model.Config
	a                   model.Attention
	q, k, v, o          *matrix
	qBias, kBias, vBias []float64 // nil where the model has none
	oBias, sinks        []float64 // likewise; a sink is a score of each head
	qNorm, kNorm        []float64 // likewise
	rope                rotary
	indexer             *blockIndexer // nil without one
	headGate            *matrix       // [heads, hidden]; nil where heads have no gate
}

// attend is the definition: o = Σ_j softmax_j(scale · q·k_j) · v_j over all positions kept. A sink,
// of which there is at most one, is a score more in the softmax, which has no value.
func attend(q []float64, keys, values [][]float64, scale float64, sink ...float64) []float64 {
	return mean(attention(q, keys, scale, sink...), values)
}

// attention returns softmax_j(scale · q·k_j) of the positions.
func attention(q []float64, keys [][]float64, scale float64, sink ...float64) []float64 {
	scores := make([]float64, len(keys))
	for j, k := range keys {
		scores[j] = scale * dot(q, k)
	}
	return softmax(append(scores, sink...))[:len(keys)]
}

// mean returns Σ_j share_j · x_j.
func mean(shares []float64, x [][]float64) []float64 {
	out := make([]float64, len(x[0]))
	for j, a := range shares {
		for d, v := range x[j] {
			out[d] += a * v
		}
	}
	return out
}

// headOf returns the same head's part of every position's vector.
func headOf(rows [][]float64, h, width int) [][]float64 {
	out := make([][]float64, len(rows))
	for j, r := range rows {
		out[j] = r[h*width : (h+1)*width]
	}
	return out
}

// mix keeps the key and value of position p and returns the mixer's output there.
func (f *fullAttention) mix(s *State, kept *layerState, a []float64, p int) []float64 {
	q, k, v, gate := f.project(s, a, p)
	kept.keys = append(kept.keys, k)
	kept.values = append(kept.values, v)
	s.see("q", q)
	s.see("k", k)
	s.see("v", v)
	out := f.heads(q, kept, f.choose(s, kept, a, p), p)
	s.see("heads", out)
	if gate != nil {
		s.see("q_gate", gate)
		for i := range gate {
			out[i] *= sigmoid(gate[i])
		}
		s.see("heads_gated", out)
	}
	if f.headGate != nil {
		for h, g := range s.mul(f.headGate, a) {
			for d := range f.a.ValueDim {
				out[h*f.a.ValueDim+d] *= sigmoid(g)
			}
		}
	}
	out = s.mul(f.o, out)
	if f.oBias != nil {
		out = add(out, f.oBias)
	}
	return out
}

// project returns queries, keys and values of position p, normalised and rotated, and what gates
// the heads' outputs, nil in models that have no such gate.
func (f *fullAttention) project(s *State, a []float64, p int) (q, k, v, gate []float64) {
	c, hd := f.cfg, f.a.HeadDim
	q, k, v = s.mul(f.q, a), s.mul(f.k, a), s.mul(f.v, a)
	if f.qBias != nil {
		q, k, v = add(q, f.qBias), add(k, f.kBias), add(v, f.vBias)
	}
	if c.AttnOutputGate {
		// Per head: a query, then the gate of that head's output.
		both := q
		q = nil
		for h := range f.a.Heads {
			q = append(q, both[h*2*hd:h*2*hd+hd]...)
			gate = append(gate, both[h*2*hd+hd:(h+1)*2*hd]...)
		}
	}
	eps := float64(c.RMSNormEps)
	if c.NormAfterRope {
		q, k = f.turnHeads(q, p), f.turnHeads(k, p)
	}
	switch c.QKNorm {
	case model.QKNormPerHead:
		q, k = headNorm(q, f.qNorm, eps), headNorm(k, f.kNorm, eps)
	case model.QKNormWhole:
		q, k = rmsNorm(q, f.qNorm, eps), rmsNorm(k, f.kNorm, eps)
	}
	if !c.NormAfterRope {
		q, k = f.turnHeads(q, p), f.turnHeads(k, p)
	}
	return q, k, v, gate
}

// choose returns the blocks of positions that each key-value head attends to, nil without an
// indexer: then it is all of them.
func (f *fullAttention) choose(s *State, kept *layerState, a []float64, p int) [][]int {
	if f.indexer == nil {
		return nil
	}
	blocks := f.indexer.choose(s, kept, a, p)
	var all []float64
	for _, b := range blocks {
		all = append(all, padded(b, f.cfg.IndexTopK)...)
	}
	s.see("positions", all)
	return blocks
}

// heads returns what the heads give at position p.
func (f *fullAttention) heads(q []float64, kept *layerState, blocks [][]int, p int) (out []float64) {
	hd := f.a.HeadDim
	first := 0 // of the positions that p attends to: with a window those from p-window+1 on
	if f.a.Window > 0 {
		first = max(0, len(kept.keys)-f.a.Window)
	}
	group := f.a.Heads / f.a.KVHeads
	for h := range f.a.Heads {
		keys, values := headOf(kept.keys[first:], h/group, hd), headOf(kept.values[first:], h/group, f.a.ValueDim)
		if blocks != nil {
			chosen := positionsOf(blocks[h/group], f.cfg.IndexBlock, p+1)
			keys, values = only(keys, chosen), only(values, chosen)
		}
		var sink []float64
		if f.sinks != nil {
			sink = f.sinks[h : h+1]
		}
		out = append(out, attend(q[h*hd:(h+1)*hd], keys, values, 1/math.Sqrt(float64(hd)), sink...)...)
	}
	if f.cfg.ValueScale != 0 {
		for i := range out {
			out[i] *= float64(f.cfg.ValueScale)
		}
	}
	return out
}

func (f *fullAttention) turnHeads(x []float64, p int) []float64 {
	var out []float64
	for h := 0; h < len(x); h += f.cfg.HeadDim {
		out = append(out, f.rope.turn(x[h:h+f.cfg.HeadDim], p)...)
	}
	return out
}

// latentNormEps is the epsilon of both norms inside latent attention, whatever the configuration
// says about the other norms.
const latentNormEps = 1e-6

// latentAttention is multi-head latent attention in its defining form: keys and values of every
// head are unfolded from the latent of their position.
type latentAttention struct {
	cfg      *model.Config
	q        *matrix // [heads·(nope+rope), hidden]; nil where qA and qB are its two factors
	qA, qB   *matrix
	qNorm    []float64
	kvA      *matrix // [rank+rope, hidden]
	kvNorm   []float64
	unfold   *matrix // [heads·(nope+value), rank]; nil where embedQ and unembed are its parts
	embedQ   *matrix // [heads·rank, nope]: each head's key part, transposed
	unembed  *matrix // [heads·value, rank]
	o        *matrix
	rope     rotary
	softmult float64  // of the scores
	indexer  *indexer // nil without one of its own
}

// softmaxScale returns (nope+rope)^-0.5, under YaRN with mscale_all_dim times m(s,
// mscale_all_dim)².
func softmaxScale(c *model.Config) float64 {
	scale := 1 / math.Sqrt(float64(c.QKNopeHeadDim+c.QKRopeHeadDim))
	if c.YaRN != nil && c.YaRN.MScaleAllDim != 0 {
		m := yarnTemperature(c.YaRN.Factor, c.YaRN.MScaleAllDim)
		scale *= m * m
	}
	return scale
}

func (l *latentAttention) mix(s *State, kept *layerState, a []float64, p int) []float64 {
	c := l.cfg
	dn, dr, dv, rank := c.QKNopeHeadDim, c.QKRopeHeadDim, c.VHeadDim, c.KVLoraRank
	var q []float64
	var lat []float64
	if l.q != nil {
		q = s.mul(l.q, a)
	} else {
		lat = rmsNorm(s.mul(l.qA, a), l.qNorm, latentNormEps)
		s.see("q_lat", lat)
		q = s.mul(l.qB, lat)
	}
	t := s.mul(l.kvA, a)
	latent := rmsNorm(t[:rank], l.kvNorm, latentNormEps)
	shared := l.rope.turn(t[rank:], p)
	var keys, values []float64 // of all heads: [nope | rope] and [value]
	for h := range c.NumAttentionHeads {
		k, v := l.unfoldHead(s, latent, h)
		keys = append(append(keys, k...), shared...)
		values = append(values, v...)
	}
	kept.keys = append(kept.keys, keys)
	kept.values = append(kept.values, values)
	kept.latents = append(kept.latents, latent)
	allKeys, allValues, allLatents := kept.keys, kept.values, kept.latents
	if c.IndexTopK > 0 {
		if l.indexer != nil {
			s.chosen = l.indexer.choose(s, kept, a, lat, p)
		}
		s.see("positions", padded(s.chosen, c.IndexTopK))
		allKeys, allValues, allLatents = only(kept.keys, s.chosen), only(kept.values, s.chosen), only(kept.latents, s.chosen)
	}
	var out []float64
	var turned, rotated, folded, latents [][]float64
	for h := range c.NumAttentionHeads {
		qh := q[h*(dn+dr) : (h+1)*(dn+dr)]
		qh = append(append([]float64(nil), qh[:dn]...), l.rope.turn(qh[dn:], p)...)
		if g := c.QueryGrowth; g != nil {
			for i := range qh {
				qh[i] *= 1 + g.Beta*math.Log(1+math.Floor(float64(p)/float64(g.Every)))
			}
		}
		shares := attention(qh, headOf(allKeys, h, dn+dr), l.softmult)
		out = append(out, mean(shares, headOf(allValues, h, dv))...)
		if s.inside != nil {
			turned, rotated = append(turned, qh), append(rotated, qh[dn:])
			folded, latents = append(folded, l.fold(qh[:dn], h)), append(latents, mean(shares, allLatents))
		}
	}
	s.see("q", turned...)
	s.see("q_pe", rotated...)
	s.see("kv_lat", latent)
	s.see("k_pe", shared)
	s.see("q_folded", folded...)
	s.see("latents", latents...)
	s.see("heads", out)
	return s.mul(l.o, out)
}

// fold returns what a head's query is to latents: q·k = fold(q)·latent for the k that unfoldHead
// makes of a latent.
func (l *latentAttention) fold(q []float64, h int) []float64 {
	dn, dv, rank := l.cfg.QKNopeHeadDim, l.cfg.VHeadDim, l.cfg.KVLoraRank
	out := make([]float64, rank)
	for r := range rank {
		if l.unfold == nil {
			out[r] = dot(l.embedQ.row(h*rank+r), q)
			continue
		}
		for d := range dn {
			out[r] += l.unfold.row(h*(dn+dv) + d)[r] * q[d]
		}
	}
	return out
}

// unfoldHead returns one head's key, without its rotated part, and value.
func (l *latentAttention) unfoldHead(s *State, latent []float64, h int) (k, v []float64) {
	dn, dv, rank := l.cfg.QKNopeHeadDim, l.cfg.VHeadDim, l.cfg.KVLoraRank
	if l.unfold != nil {
		both := s.mul(l.unfold.slice(h*(dn+dv), (h+1)*(dn+dv)), latent)
		return both[:dn], both[dn:]
	}
	k = make([]float64, dn)
	for r := range rank {
		for d, w := range l.embedQ.row(h*rank + r) {
			k[d] += w * latent[r]
		}
	}
	return k, s.mul(l.unembed.slice(h*dv, (h+1)*dv), latent)
}
