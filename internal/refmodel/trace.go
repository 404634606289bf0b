package refmodel

import (
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/model"
)

// Trace is what the model computed for T tokens from an empty state.
type Trace struct {
	Tokens []int32     // [T]
	Logits [][]float64 // [T][vocab]
	// [layers+1][T][hidden]: the embedding, then the residual stream after each layer
	Hidden [][][]float64
	Mixer  [][][]float64 // [layers][T][hidden]: the mixer's output, before it is added
	// [layers][T][hidden]: the feed-forward part's output, before it is added
	FFN       [][][]float64
	FinalNorm [][]float64   // [T][hidden]
	Picks     [][][]int     // [layers with experts][T][K], best choice first
	Weights   [][][]float64 // [layers with experts][T][K]
	Gaps      [][]float64   // [layers with experts][T]: Route.Gap
}

func newTrace(c *model.Config) *Trace {
	n, moe := c.NumHiddenLayers, len(c.MoELayers())
	return &Trace{
		Hidden: make([][][]float64, n+1), Mixer: make([][][]float64, n), FFN: make([][][]float64, n),
		Picks: make([][][]int, moe), Weights: make([][][]float64, moe), Gaps: make([][]float64, moe),
	}
}

func (t *Trace) add(token int32, p *Position) {
	t.Tokens = append(t.Tokens, token)
	t.Logits = append(t.Logits, p.Logits)
	t.FinalNorm = append(t.FinalNorm, p.FinalNorm)
	for i, h := range p.Hidden {
		t.Hidden[i] = append(t.Hidden[i], h)
	}
	for i := range p.Mixer {
		t.Mixer[i] = append(t.Mixer[i], p.Mixer[i])
		t.FFN[i] = append(t.FFN[i], p.FFN[i])
	}
	for i, r := range p.Routes {
		t.Picks[i] = append(t.Picks[i], r.Picks)
		t.Weights[i] = append(t.Weights[i], r.Weights)
		t.Gaps[i] = append(t.Gaps[i], r.Gap)
	}
}

// Loss returns the mean negative log-likelihood, in nats, of tokens 1 to T-1, each given those
// before it. It is NaN for fewer than two tokens.
func (t *Trace) Loss() float64 {
	sum := 0.0
	for i := 1; i < len(t.Tokens); i++ {
		sum += NLL(t.Logits[i-1], t.Tokens[i])
	}
	return sum / float64(len(t.Tokens)-1)
}

// NLL returns the negative log-likelihood of a token under logits, in nats.
func NLL(logits []float64, token int32) float64 {
	top := slices.Max(logits)
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(x - top)
	}
	return top + math.Log(sum) - logits[token]
}

// Argmax returns the index of the greatest logit, the lowest of equal ones, and how far it is above
// all others.
func Argmax(logits []float64) (token int32, margin float64) {
	picks, margin := best(logits, 1)
	return int32(picks[0]), margin
}

// MinGap returns the smallest Route.Gap of all layers and positions. If it is small, a less exact
// engine may choose other experts and still be right. +Inf means that there was no choice.
func (t *Trace) MinGap() float64 {
	out := math.Inf(1)
	for _, layer := range t.Gaps {
		for _, g := range layer {
			out = min(out, g)
		}
	}
	return out
}

// MaxDiff returns the largest difference between the logits, and between the hidden states, of two
// traces of the same model and tokens. It is +Inf if they differ in a pick.
func (t *Trace) MaxDiff(other *Trace) (logits, hidden float64) {
	for i := range t.Picks {
		for p := range t.Picks[i] {
			if !slices.Equal(slices.Sorted(slices.Values(t.Picks[i][p])), slices.Sorted(slices.Values(other.Picks[i][p]))) {
				return math.Inf(1), math.Inf(1)
			}
		}
	}
	for p := range t.Logits {
		logits = max(logits, maxDiff(t.Logits[p], other.Logits[p]))
	}
	for i := range t.Hidden {
		for p := range t.Hidden[i] {
			hidden = max(hidden, maxDiff(t.Hidden[i][p], other.Hidden[i][p]))
		}
	}
	return logits, hidden
}

func maxDiff[F float32 | float64](got []F, want []float64) float64 {
	d := 0.0
	for i := range want {
		// written so that NaN is the largest difference of all
		if x := math.Abs(float64(got[i]) - want[i]); !(x <= d) {
			d = x
			if math.IsNaN(x) {
				return math.Inf(1)
			}
		}
	}
	return d
}
