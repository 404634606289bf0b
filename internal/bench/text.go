package bench

import (
	"context"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/stages/sample"
)

// text is a sequence that decodes greedily. It keeps no logits, and so allocates nothing for a
// token.
type text struct {
	*actors.Sequence
	next   []int32 // the token after the last one read
	greedy *sample.Sampler
	choose func(sample.Best) error
}

func newText(seq *actors.Sequence) *text {
	t := &text{Sequence: seq, next: make([]int32, 1), greedy: sample.New(sample.Options{})}
	t.choose = func(b sample.Best) (err error) {
		t.next[0], err = t.greedy.NextOf(b)
		return err
	}
	return t
}

// read appends tokens and chooses the next.
func (t *text) read(ctx context.Context, tokens []int32) error {
	return t.UseBest(ctx, tokens, t.choose)
}

// readTraced is read with the routing.
func (t *text) readTraced(ctx context.Context, tokens []int32) (*actors.Evaluated, error) {
	r, err := t.EvalChunk(ctx, actors.Chunk{Tokens: tokens, Logits: actors.BestLogits, Routing: true})
	if err != nil {
		return nil, err
	}
	return r, t.choose(r.Best)
}
