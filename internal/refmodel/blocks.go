package refmodel

import (
	"math"

	"github.com/moeflux/moeflux-actor/model"
)

// blockIndexer chooses blocks of positions for each key-value head of full attention.
type blockIndexer struct {
	cfg          *model.Config
	q, k         *matrix // [heads·dim, hidden], [dim, hidden]
	qNorm, kNorm []float64
	rope         rotary // of the first channels of a head
}

func (l *loader) blockIndexer(p string) *blockIndexer {
	c, dim := l.cfg, l.cfg.IndexHeadDim
	return &blockIndexer{
		cfg: c, rope: newRotary(c.RotaryDim, c.RopeTheta, c.YaRN, c.RopeInterleaved),
		q: l.matrix(p+"index_q_proj", c.IndexNHeads*dim, c.HiddenSize), k: l.matrix(p+"index_k_proj", dim, c.HiddenSize),
		qNorm: l.vector(p+"index_q_norm.weight", dim), kNorm: l.vector(p+"index_k_norm.weight", dim),
	}
}

// choose keeps the key of position p and returns the blocks that each key-value head attends to
// there, rising.
func (x *blockIndexer) choose(s *State, kept *layerState, a []float64, p int) [][]int {
	c, dim, eps := x.cfg, x.cfg.IndexHeadDim, float64(x.cfg.RMSNormEps)
	kept.indexKeys = append(kept.indexKeys, x.rope.turn(rmsNorm(s.mul(x.k, a), x.kNorm, eps), p))
	q := headNorm(s.mul(x.q, a), x.qNorm, eps)
	var all [][]int
	for h := range c.IndexNHeads {
		scores := blockScores(x.rope.turn(q[h*dim:(h+1)*dim], p), kept.indexKeys, c.IndexBlock)
		for b := max(0, len(scores)-c.IndexLocal); b < len(scores); b++ {
			scores[b] = math.Inf(1)
		}
		all = append(all, largest(scores, c.IndexTopK))
	}
	kept.blocks = append(kept.blocks, all)
	return all
}

// blockScores is the definition: the largest q·k_j of each block.
func blockScores(q []float64, keys [][]float64, block int) []float64 {
	var scores []float64
	for j, k := range keys {
		if j%block == 0 {
			scores = append(scores, math.Inf(-1))
		}
		scores[j/block] = max(scores[j/block], dot(q, k))
	}
	return scores
}

// positionsOf returns the first n positions that blocks have.
func positionsOf(blocks []int, block, n int) []int {
	var out []int
	for _, b := range blocks {
		for j := b * block; j < min((b+1)*block, n); j++ {
			out = append(out, j)
		}
	}
	return out
}
