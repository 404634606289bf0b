package refmodel

import (
	"cmp"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/model"
)

// indexer chooses the positions that latent attention attends to.
type indexer struct {
	cfg           *model.Config
	q, k, weights *matrix // [heads·dim, query rank], [dim, hidden], [heads, hidden]
	norm, bias    []float64
	rope          rotary // of the first channels of a head
}

func (l *loader) indexer(p string) *indexer {
	c, dim := l.cfg, l.cfg.IndexHeadDim
	return &indexer{
		cfg: c, rope: newRotary(c.QKRopeHeadDim, c.RopeTheta, c.YaRN, c.IndexerRopeInterleaved),
		q: l.matrix(p+"wq_b", c.IndexNHeads*dim, c.QLoraRank), k: l.matrix(p+"wk", dim, c.HiddenSize),
		weights: l.matrix(p+"weights_proj", c.IndexNHeads, c.HiddenSize),
		norm:    l.vector(p+"k_norm.weight", dim), bias: l.vector(p+"k_norm.bias", dim),
	}
}

// choose keeps the key of position p and returns the positions that it attends to, rising. a is the
// layer's input, lat the compressed query.
func (x *indexer) choose(s *State, kept *layerState, a, lat []float64, p int) []int {
	c, dim := x.cfg, x.cfg.IndexHeadDim
	k := layerNorm(s.mul(x.k, a), x.norm, x.bias, latentNormEps)
	kept.indexKeys = append(kept.indexKeys, x.rope.turn(k, p))
	q, weights := s.mul(x.q, lat), s.mul(x.weights, a)
	var queries [][]float64
	for h := range c.IndexNHeads {
		queries = append(queries, x.rope.turn(q[h*dim:(h+1)*dim], p))
	}
	scores := indexScores(queries, kept.indexKeys, weights)
	kept.scores, kept.choices = append(kept.scores, scores), append(kept.choices, largest(scores, c.IndexTopK))
	return kept.choices[p]
}

// indexScores is the definition: Σ_h w_h/√heads · max(0, q_h·k_j/√dim).
func indexScores(queries, keys [][]float64, weights []float64) []float64 {
	scores := make([]float64, len(keys))
	for h, q := range queries {
		for j, k := range keys {
			if r := dot(q, k) / math.Sqrt(float64(len(k))); r > 0 {
				scores[j] += weights[h] / math.Sqrt(float64(len(queries))) * r
			}
		}
	}
	return scores
}

// largest returns the indexes of the k largest numbers, rising; of equal ones the lower.
func largest(x []float64, k int) []int {
	all := make([]int, len(x))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(i, j int) int { return cmp.Compare(x[j], x[i]) })
	all = all[:min(k, len(all))]
	slices.Sort(all)
	return all
}

// layerNorm normalises around the mean.
func layerNorm(x, w, b []float64, eps float64) []float64 {
	mean, squares := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		squares += (v - mean) * (v - mean) / float64(len(x))
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = w[i]*(v-mean)/math.Sqrt(squares+eps) + b[i]
	}
	return out
}

// only returns the chosen rows.
func only(rows [][]float64, chosen []int) [][]float64 {
	var out [][]float64
	for _, j := range chosen {
		out = append(out, rows[j])
	}
	return out
}

// padded returns positions as numbers, followed by -1 up to n of them.
func padded(positions []int, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = -1
		if i < len(positions) {
			out[i] = float64(positions[i])
		}
	}
	return out
}
