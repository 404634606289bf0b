package actors_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// sharing is what keys of different weights were served whose clients ask without a pause.
type sharing struct {
	e       *actors.Engine
	weights []int
	served  []atomic.Int64 // tokens
	all     atomic.Int64
	most    int64 // in all
	stop    context.CancelFunc
}

// client generates one text after another for a key until enough is served.
func (x *sharing) client(ctx context.Context, key int, prompt []int32, tokens int) error {
	for ctx.Err() == nil {
		s, err := x.e.NewSequenceFor(ctx, actors.SequenceOptions{Key: fmt.Sprint(key), Weight: x.weights[key]})
		if err != nil {
			return err
		}
		n := len(prompt)
		for _, err = range s.Generate(ctx, prompt, actors.GenerateOptions{MaxTokens: tokens, IgnoreEOS: true}) {
			if err != nil {
				break
			}
			x.serve(key, n)
			n = 1
		}
		if err := errors.Join(err, s.Close()); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (x *sharing) serve(key, n int) {
	if all := x.all.Add(int64(n)); all > x.most {
		x.stop()
		return
	}
	x.served[key].Add(int64(n))
}

// index is Jain's index of fairness by weight.
func (x *sharing) index() float64 {
	sum, squares := 0.0, 0.0
	for i, w := range x.weights {
		had := float64(x.served[i].Load()) / float64(w)
		sum += had
		squares += had * had
	}
	return sum * sum / (float64(len(x.weights)) * squares)
}

// TestWeights lets keys share an engine that has too little for all: memory for eight texts, and
// the time in which prompts are read. Each is served by its weight.
func TestWeights(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	memory := forEight(open(t, actors.Config{Model: dir, Context: 64}))
	for _, tc := range []struct {
		name                    string
		cfg                     actors.Config
		clients, prompt, tokens int // clients of each key; tokens of a text
		most                    int64
	}{
		{"memory", memory, 8, 5, 12, 1600},
		{"prompts", actors.Config{Context: 128, ChunkRows: 16}, 10, 100, 1, 40_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.cfg.Model = dir
			x := &sharing{e: open(t, tc.cfg), weights: []int{1, 2, 5}, served: make([]atomic.Int64, 3), most: tc.most}
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			x.stop = stop
			var all sync.WaitGroup
			for key := range x.weights {
				for i := range tc.clients {
					all.Go(func() {
						if err := x.client(ctx, key, prompt(uint64(key*100+i), tc.prompt, x.e.Model().VocabSize), tc.tokens); !errors.Is(err, context.Canceled) {
							t.Error(err)
						}
					})
				}
			}
			all.Wait()
			t.Logf("tokens of weights %v: %d, %d, %d; Jain's index by weight %.4f", x.weights, x.served[0].Load(), x.served[1].Load(), x.served[2].Load(), x.index())
			if x.index() <= 0.95 {
				t.Error("the shares are not those of the weights")
			}
		})
	}
}
