package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/actors"
)

type evalCmd struct {
	IDs    string `name:"ids" required:"" placeholder:"FILE" help:"A JSON file with one list of token ids; - for stdin."`
	Window int    `default:"512" placeholder:"W" help:"Ids per window; the state is emptied between windows. Default: 512."`
	JSON   bool   `name:"json" help:"Print one JSON object: nll, mean_nll, ppl, tokens, seconds."`

	engineFlags `group:"Engine:"`
}

// Help is shown by --help.
func (evalCmd) Help() string {
	return `Example:

    moeflux-actor eval --model DIR --ids ids.json --window 512 --json
    moeflux-actor eval --model DIR --ids ids.json --activations f32

Window i reads ids[i*W .. i*W+W-1] with an empty state and predicts ids[i*W+1 .. i*W+W]; its loss is the mean of
-log p(next id) in nats. The last window may be shorter; one with nothing to predict does not count. mean_nll is the mean over
all tokens, and ppl is its exponential.

By default activations are rounded (--activations int8), as they are when the engine generates text. --activations f32 gives the
loss of the model itself, which can be compared with other engines; the difference is what rounding costs.`
}

// evalResult is what eval --json prints.
type evalResult struct {
	NLL     []float64 `json:"nll"` // of each window, in nats
	MeanNLL float64   `json:"mean_nll"`
	PPL     float64   `json:"ppl"`
	Tokens  int       `json:"tokens"` // ids that were asked for
	Seconds float64   `json:"seconds"`
}

// Run measures the loss.
func (c *evalCmd) Run(ctx context.Context, inv *invocation) error {
	if c.Window < 1 {
		return usagef("--window %d: must be 1 or more", c.Window)
	}
	if err := c.check(); err != nil {
		return err
	}
	data, err := readInput(inv, c.IDs)
	if err != nil {
		return fmt.Errorf("the ids cannot be read: %w", err)
	}
	ids, err := parseIDs(data)
	if err == nil && len(ids) < 2 {
		err = fmt.Errorf("%d ids leave nothing to predict; at least 2 are needed", len(ids))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.IDs, err)
	}
	s, err := openSession(ctx, inv, &c.engineFlags)
	if err != nil {
		return err
	}
	return errors.Join(c.eval(ctx, inv, s, ids), s.close())
}

func (c *evalCmd) eval(ctx context.Context, inv *invocation, s *session, ids []int32) error {
	if err := checkVocab(ids, s.engine.Model().VocabSize); err != nil {
		return fmt.Errorf("%s: %w", c.IDs, err)
	}
	seq, err := s.engine.NewSequence(ctx)
	if err != nil {
		return err
	}
	defer seq.Close()
	var (
		bar     = newProgress(inv)
		begin   = inv.env.now()
		targets = len(ids) - 1
		result  = evalResult{NLL: []float64{}, Tokens: targets}
		sum     float64
	)
	defer bar.clear()
	for pos := 0; pos < targets; pos += c.Window {
		n := min(c.Window, targets-pos)
		windowSum, err := evalWindow(ctx, s, seq, ids[pos:pos+n+1])
		if err != nil {
			return fmt.Errorf("window %d: %w", len(result.NLL), err)
		}
		result.NLL = append(result.NLL, windowSum/float64(n))
		sum += windowSum
		bar.update("eval", int64(pos+n), int64(targets), formatCount)
	}
	bar.clear()
	result.MeanNLL = sum / float64(targets)
	result.PPL = math.Exp(result.MeanNLL)
	result.Seconds = inv.env.now().Sub(begin).Seconds()
	if c.JSON {
		return writeJSON(inv.stdout, result)
	}
	for i, nll := range result.NLL {
		if _, err := fmt.Fprintf(inv.stdout, "window %d: %.6f\n", i, nll); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(inv.stdout, "mean loss %.6f nats, perplexity %.4f, %d tokens in %.1f s (%.1f tokens/s)\n",
		result.MeanNLL, result.PPL, result.Tokens, result.Seconds, float64(targets)/max(result.Seconds, 1e-9))
	return err
}

// evalWindow empties the sequence, reads all ids but the last and returns the sum of the losses of
// all but the first.
func evalWindow(ctx context.Context, s *session, seq *actors.Sequence, ids []int32) (float64, error) {
	if err := seq.Reset(ctx); err != nil {
		return 0, err
	}
	seq.Declare(len(ids) - 1)
	ctx, end := s.span(ctx, "moeflux.window")
	defer end()
	vocab, sum := s.engine.Model().VocabSize, 0.0
	// A large vocabulary's logits for a whole window would need much memory; steps are at most
	// ChunkRows anyway.
	const logitBytes = 64 << 20
	piece := max(1, min(s.engine.Info().ChunkRows, logitBytes/(4*vocab)))
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
