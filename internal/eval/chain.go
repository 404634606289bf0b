package eval

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/io/synth"
)

const (
	chainPrompt = 8 // tokens that are fed at once

	// MostDifferences is how many differences Differences.First has at most.
	MostDifferences = 20
)

// Differences are what of an engine's behaviour is not that of its synthetic model.
type Differences struct {
	Tokens      int      `json:"tokens"`
	Differences int      `json:"differences"`
	TooClose    int      `json:"too_close"` // layers of tokens where another choice is as good
	Seconds     float64  `json:"seconds"`   // of decoding, for the caller to fill in
	First       []string `json:"first,omitempty"`
}

// Text formats the differences for people.
func (r *Differences) Text() string {
	var b strings.Builder
	for _, d := range r.First {
		fmt.Fprintln(&b, d)
	}
	fmt.Fprintf(&b, "%d tokens: %d differences, %d decisions too close to tell, %.2f tokens/s\n",
		r.Tokens, r.Differences, r.TooClose, float64(r.Tokens)/r.Seconds)
	return b.String()
}

// Chain feeds the first n tokens of the model's chain, some as one chunk and then one by one,
// whatever the engine would have chosen, and compares every next token and every layer's experts
// with what they must be. n must fit in a sequence. progress, which may be nil, is told how many
// tokens are done.
func Chain(ctx context.Context, e *actors.Engine, m *synth.Model, n int, progress func(done, total int)) (*Differences, error) {
	seq, err := e.NewSequence(ctx)
	if err != nil {
		return nil, err
	}
	defer seq.Close()
	r, chain := new(Differences), m.Chain(n)
	for r.Tokens < len(chain) {
		rows := 1
		if r.Tokens == 0 {
			rows = min(chainPrompt, len(chain))
		}
		tokens := chain[r.Tokens : r.Tokens+rows]
		out, err := seq.EvalChunk(ctx, actors.Chunk{Tokens: tokens, Logits: actors.AllLogits, Routing: true})
		if err != nil {
			return nil, err
		}
		r.compare(m, tokens, out, e.Info().TopK)
		r.Tokens += rows
		if progress != nil {
			progress(r.Tokens, len(chain))
		}
	}
	return r, nil
}

// compare counts the differences of one chunk.
func (r *Differences) compare(m *synth.Model, tokens []int32, out *actors.Evaluated, topK int) {
	vocab := m.Config().VocabSize
	for i, token := range tokens {
		logits := out.Logits[i*vocab : (i+1)*vocab]
		next := int32(slices.Index(logits, slices.Max(logits))) // -1 where one is NaN
		var picks [][]int32                                     // of row i, layer by layer
		for layer := range slices.Chunk(out.Picks, len(tokens)*topK) {
			picks = append(picks, layer[i*topK:(i+1)*topK])
		}
		diffs, unsure := m.Compare(token, next, picks)
		for _, d := range diffs {
			if len(r.First) < MostDifferences {
				r.First = append(r.First, fmt.Sprintf("position %d: %v", r.Tokens+i, d))
			}
		}
		r.Differences += len(diffs)
		r.TooClose += unsure
	}
}
