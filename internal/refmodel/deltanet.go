package refmodel

import (
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/model"
)

// deltaNet is linear attention by the gated delta rule.
type deltaNet struct {
	cfg          *model.Config
	qkv, z, a, b *matrix
	conv         []float64 // [channels, taps]; the last tap is the current position's
	aLog, dtBias []float64 // [value heads]
	norm         []float64 // [value head dim]
	out          *matrix
}

// mix advances the layer's state by one position and returns the mixer's output.
func (n *deltaNet) mix(s *State, kept *layerState, x []float64) []float64 {
	c := n.cfg
	dk, dv := c.LinearKeyHeadDim, c.LinearValueHeadDim
	qkv, z, b, alpha := s.mul(n.qkv, x), s.mul(n.z, x), s.mul(n.b, x), s.mul(n.a, x)
	if kept.recurrent == nil {
		kept.recurrent = newRecurrent(c)
	}
	s.see("conv_state_in", n.window(kept.recent)...)
	s.see("state_in", slices.Concat(kept.recurrent...)...)
	s.see("qkv", qkv)
	s.see("z", z)
	s.see("alpha", alpha)
	s.see("beta", b)
	kept.recent = append(kept.recent, qkv)
	mixed := n.convolve(kept.recent)
	if drop := len(kept.recent) - (c.LinearConvKernelDim - 1); drop > 0 {
		kept.recent = kept.recent[drop:]
	}
	q, k, v := mixed[:c.LinearKeyDim()], mixed[c.LinearKeyDim():2*c.LinearKeyDim()], mixed[2*c.LinearKeyDim():]
	var heads, y []float64
	share := c.LinearNumValueHeads / c.LinearNumKeyHeads
	for h := range c.LinearNumValueHeads {
		kh := h / share
		g, beta := deltaGates(n.aLog[h], n.dtBias[h], alpha[h], b[h])
		qh := l2Norm(q[kh*dk:(kh+1)*dk], 1/math.Sqrt(float64(dk)))
		kh2 := l2Norm(k[kh*dk:(kh+1)*dk], 1)
		o, _ := deltaRule(kept.recurrent[h], qh, kh2, v[h*dv:(h+1)*dv], g, beta)
		heads = append(heads, o...)
		y = append(y, gatedNorm(o, n.norm, z[h*dv:(h+1)*dv], float64(c.RMSNormEps))...)
	}
	s.see("conv", mixed)
	s.see("conv_state", n.window(kept.recent)...)
	s.see("state", slices.Concat(kept.recurrent...)...)
	s.see("heads", heads)
	s.see("heads_gated", y)
	return s.mul(n.out, y)
}

// window returns the inputs that the convolution keeps of those before the next position, oldest
// first; before the first position they are zero.
func (n *deltaNet) window(recent [][]float64) [][]float64 {
	out := make([][]float64, n.cfg.LinearConvKernelDim-1)
	for i := range out {
		if at := len(recent) - len(out) + i; at >= 0 {
			out[i] = recent[at]
		} else {
			out[i] = make([]float64, n.cfg.LinearConvDim())
		}
	}
	return out
}

// newRecurrent returns the empty state [value heads][value dim][key dim].
func newRecurrent(c *model.Config) [][][]float64 {
	out := make([][][]float64, c.LinearNumValueHeads)
	for h := range out {
		out[h] = make([][]float64, c.LinearValueHeadDim)
		for d := range out[h] {
			out[h][d] = make([]float64, c.LinearKeyHeadDim)
		}
	}
	return out
}

// convolve returns silu(Σ_j w[ch, j] · rows[t-taps+1+j][ch]) for the last row t; rows before the
// first are zero.
func (n *deltaNet) convolve(rows [][]float64) []float64 {
	taps := n.cfg.LinearConvKernelDim
	out := make([]float64, n.cfg.LinearConvDim())
	for ch := range out {
		sum := 0.0
		for j := range taps {
			if at := len(rows) - taps + j; at >= 0 {
				sum += n.conv[ch*taps+j] * rows[at][ch]
			}
		}
		out[ch] = silu(sum)
	}
	return out
}

// deltaGates returns one value head's decay g, between 0 and 1, and learning rate beta.
func deltaGates(aLog, dtBias, alpha, b float64) (g, beta float64) {
	return math.Exp(-math.Exp(aLog) * softplus(alpha+dtBias)), sigmoid(b)
}

// deltaRule advances the state S [dv][dk] of one value head: S decays, the share beta of its error
// in predicting v from k is corrected, and the output is read with q. delta is the correction.
func deltaRule(state [][]float64, q, k, v []float64, g, beta float64) (out, delta []float64) {
	for d := range state {
		for i := range state[d] {
			state[d][i] *= g
		}
	}
	for d := range state {
		delta = append(delta, beta*(v[d]-dot(state[d], k)))
	}
	for d := range state {
		for i := range state[d] {
			state[d][i] += delta[d] * k[i]
		}
	}
	for d := range state {
		out = append(out, dot(state[d], q))
	}
	return out, delta
}
