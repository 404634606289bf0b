package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/io/synth"
)

const (
	synthPrompt = 8  // tokens that synth --check feeds at once
	synthShown  = 20 // differences that it prints
)

// synthCheck is what synth --check --json prints.
type synthCheck struct {
	Tokens      int      `json:"tokens"`
	Differences int      `json:"differences"`
	TooClose    int      `json:"too_close"` // layers of tokens where another choice is as good
	Seconds     float64  `json:"seconds"`   // of decoding, the model open
	First       []string `json:"first,omitempty"`
}

// checkModel feeds a model its chain and holds what it computes against what it must.
func (c *synthCmd) checkModel(ctx context.Context, inv *invocation) error {
	m, err := synth.Load(c.Check)
	if err != nil {
		return err
	}
	c.Model = c.Check
	s, err := openSession(ctx, inv, &c.engineFlags)
	if err != nil {
		return err
	}
	var r synthCheck
	if err := errors.Join(c.feed(ctx, inv, s, m, &r), s.close()); err != nil {
		return err
	}
	if c.JSON {
		err = writeJSON(inv.stdout, r)
	} else {
		for _, d := range r.First {
			if _, err = fmt.Fprintln(inv.stdout, d); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(inv.stdout, "%d tokens: %d differences, %d decisions too close to tell, %.2f tokens/s\n",
			r.Tokens, r.Differences, r.TooClose, float64(r.Tokens)/r.Seconds)
	}
	if err == nil && r.Differences > 0 {
		err = fmt.Errorf("%s: %d differences in %d tokens: the engine computes wrong, or the files are damaged", c.Check, r.Differences, r.Tokens)
	}
	return err
}

// feed evaluates the chain: the first tokens as one chunk, then one by one, whatever the engine
// would have chosen.
func (c *synthCmd) feed(ctx context.Context, inv *invocation, s *session, m *synth.Model, r *synthCheck) error {
	if n := s.engine.Info().Context; c.Tokens > n {
		return usagef("--tokens %d, but a sequence has %d positions", c.Tokens, n)
	}
	seq, err := s.engine.NewSequence(ctx)
	if err != nil {
		return err
	}
	defer seq.Close()
	begin, bar := inv.env.now(), newProgress(inv)
	defer bar.clear()
	chain := m.Chain(c.Tokens)
	for r.Tokens < len(chain) {
		n := 1
		if r.Tokens == 0 {
			n = min(synthPrompt, len(chain))
		}
		tokens := chain[r.Tokens : r.Tokens+n]
		out, err := seq.EvalChunk(ctx, actors.Chunk{Tokens: tokens, Logits: actors.AllLogits, Routing: true})
		if err != nil {
			return err
		}
		r.compare(m, tokens, out, s.engine.Info().TopK)
		r.Tokens += n
		bar.update("checking", int64(r.Tokens), int64(len(chain)), formatCount)
	}
	r.Seconds = inv.env.now().Sub(begin).Seconds()
	return nil
}

// compare counts the differences of one chunk.
func (r *synthCheck) compare(m *synth.Model, tokens []int32, out *actors.Evaluated, topK int) {
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
			if len(r.First) < synthShown {
				r.First = append(r.First, fmt.Sprintf("position %d: %v", r.Tokens+i, d))
			}
		}
		r.Differences += len(diffs)
		r.TooClose += unsure
	}
}
