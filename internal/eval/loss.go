package eval

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
)

// Span begins a trace, which end ends.
type Span func(ctx context.Context, name string) (_ context.Context, end func())

// Losses are the losses of windows of a text.
type Losses struct {
	NLL     []float64 `json:"nll"` // the mean of each window, in nats
	MeanNLL float64   `json:"mean_nll"`
	PPL     float64   `json:"ppl"`     // exp(MeanNLL)
	Tokens  int       `json:"tokens"`  // ids that were asked for
	Seconds float64   `json:"seconds"` // for the caller to fill in
}

// Text formats the losses for people.
func (r *Losses) Text() string {
	var b strings.Builder
	for i, nll := range r.NLL {
		fmt.Fprintf(&b, "window %d: %.6f\n", i, nll)
	}
	fmt.Fprintf(&b, "mean loss %.6f nats, perplexity %.4f, %d tokens in %.1f s (%.1f tokens/s)\n",
		r.MeanNLL, r.PPL, r.Tokens, r.Seconds, float64(r.Tokens)/max(r.Seconds, 1e-9))
	return b.String()
}

// Loss predicts each of ids but the first from those before it in its window. Window i reads
// ids[i·w .. i·w+w-1] with an empty state. Two ids or more are needed, and all must be in the
// vocabulary. progress, which may be nil, is told how many of the targets are done.
func Loss(ctx context.Context, e *actors.Engine, span Span, ids []int32, window int, progress func(done, total int)) (*Losses, error) {
	seq, err := e.NewSequence(ctx)
	if err != nil {
		return nil, err
	}
	defer seq.Close()
	targets, sum := len(ids)-1, 0.0
	r := &Losses{NLL: []float64{}, Tokens: targets}
	for pos := 0; pos < targets; pos += window {
		n := min(window, targets-pos)
		of, err := windowLoss(ctx, e, span, seq, ids[pos:pos+n+1])
		if err != nil {
			return nil, fmt.Errorf("window %d: %w", len(r.NLL), err)
		}
		r.NLL = append(r.NLL, of/float64(n))
		sum += of
		if progress != nil {
			progress(pos+n, targets)
		}
	}
	r.MeanNLL = sum / float64(targets)
	r.PPL = math.Exp(r.MeanNLL)
	return r, nil
}

// windowLoss empties the sequence, reads all ids but the last and returns the sum of the losses of
// all but the first.
func windowLoss(ctx context.Context, e *actors.Engine, span Span, seq *actors.Sequence, ids []int32) (float64, error) {
	if err := seq.Reset(ctx); err != nil {
		return 0, err
	}
	seq.Declare(len(ids) - 1)
	ctx, end := span(ctx, "moeflux.window")
	defer end()
	vocab, sum := e.Model().VocabSize, 0.0
	// A large vocabulary's logits for a whole window would need much memory; steps are at most
	// ChunkRows anyway.
	const logitBytes = 64 << 20
	piece := max(1, min(e.Info().ChunkRows, logitBytes/(4*vocab)))
	for pos := 0; pos < len(ids)-1; pos += piece {
		n := min(piece, len(ids)-1-pos)
		out, err := seq.EvalChunk(ctx, actors.Chunk{Tokens: ids[pos : pos+n : pos+n], Logits: actors.AllLogits})
		if err != nil {
			return 0, err
		}
		for i := range n {
			loss := nll(out.Logits[i*vocab:(i+1)*vocab], ids[pos+i+1])
			if math.IsNaN(loss) || math.IsInf(loss, 0) {
				return 0, fmt.Errorf("the loss at id %d is %v; the weights or the sequence's state are damaged", pos+i+1, loss)
			}
			sum += loss
		}
	}
	return sum, nil
}

// nll returns -log softmax(logits)[id] in nats, in float64.
func nll(logits []float32, id int32) float64 {
	top := math.Inf(-1)
	for _, l := range logits {
		top = max(top, float64(l)) // NaN stays
	}
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l) - top)
	}
	return top + math.Log(sum) - float64(logits[id])
}
