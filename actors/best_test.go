package actors_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/sample"
)

// TestBestLogits holds the largest logits against all of them, for sequences that travel together
// and want different things, and what is generated with either.
func TestBestLogits(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	e := open(t, actors.Config{Model: dir, Device: device(t, 2)})
	vocab := e.Model().VocabSize
	var together sync.WaitGroup
	for n := range 20 { // more than the head computes at once
		a, b := sequence(t, e), sequence(t, e)
		together.Go(func() {
			text := prompt(uint64(n), 3+n, vocab)
			for i := range 6 {
				tokens := text
				if i > 0 {
					tokens = text[:1]
				}
				all, err := a.Eval(context.Background(), tokens)
				if err != nil {
					t.Error(err)
					return
				}
				r, err := b.EvalChunk(context.Background(), actors.Chunk{Tokens: tokens, Logits: actors.BestLogits})
				if err != nil || r.Logits != nil || len(r.Best.Tokens) != stages.BestOf(vocab) {
					t.Errorf("%d largest logits and %d others, %v", len(r.Best.Tokens), len(r.Logits), err)
					return
				}
				last := sample.Best{Logits: []float32{float32(math.Inf(1))}, Tokens: []int32{-1}}
				for k, id := range r.Best.Tokens {
					l := r.Best.Logits[k]
					if l != all[id] || l > last.Logits[0] || l == last.Logits[0] && id <= last.Tokens[0] {
						t.Errorf("number %d is token %d with %v, which has %v, behind %+v", k, id, l, all[id], last)
					}
					last = sample.Best{Logits: []float32{l}, Tokens: []int32{id}}
				}
				more := 0
				for _, l := range all {
					if l > last.Logits[0] {
						more++
					}
				}
				if more >= len(r.Best.Tokens) {
					t.Errorf("%d logits are larger than the last of %d", more, len(r.Best.Tokens))
				}
			}
		})
	}
	together.Wait()
	for _, o := range []sample.Options{{}, {Temperature: 0.8, TopK: 20, TopP: 0.95, Seed: 3}, {Temperature: 1.5, TopK: 64, Seed: 4}} {
		p := prompt(9, 11, vocab)
		s, sampler := sequence(t, e), sample.New(o)
		want, tokens := []int32(nil), p
		for range 12 {
			l, err := s.Eval(context.Background(), tokens)
			if err != nil {
				t.Fatal(err)
			}
			id, err := sampler.Next(l, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			want, tokens = append(want, id), []int32{id}
		}
		var got []int32
		for id, err := range sequence(t, e).Generate(context.Background(), p, actors.GenerateOptions{MaxTokens: 12, IgnoreEOS: true, Sampling: o}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, id)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: %v, want %v", o, got, want)
		}
	}
}
