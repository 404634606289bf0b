package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/stages/sample"
)

type logitsCmd struct {
	IDs     string `name:"ids" required:"" placeholder:"FILE" help:"A JSON file with an object of name to list of token ids; - for stdin."`
	Out     string `required:"" placeholder:"FILE" help:"The safetensors file to write. It appears complete or not at all."`
	Hidden  bool   `help:"Also write P.hidden F32 [layers+1, T, hidden]."`
	Routing bool   `help:"Also write P.router_idx I32 and P.router_weight F32 [moe layers, T, k], heaviest first."`
	Decode  int    `placeholder:"N" help:"Also decode N ids greedily: P.decode_ids I32 [N] and P.decode_logits F32 [N, vocab]."`
	JSON    bool   `name:"json" help:"Print one JSON object: out, names, tokens."`

	engineFlags `group:"Engine:"`
}

// Help is shown by --help.
func (logitsCmd) Help() string {
	return `Example:

    echo '{"a": [1, 2, 3]}' > ids.json
    moeflux-actor logits --model DIR --ids ids.json --out logits.safetensors --hidden --routing --decode 4 --activations f32

For each name P in the ids file, P.logits is F32 [T, vocab], one row for each id. P.hidden is the residual stream before the
final norm: index 0 holds the embeddings, index i the stream after layer i-1. The router tensors have one entry for each layer
with experts. P.decode_ids begins with the argmax of the last row of P.logits; row i of P.decode_logits are the logits after
feeding id i. Decoding does not stop at end-of-text ids.

The default, --activations int8, rounds: it shows in the numbers and occasionally in a pick. To compare with another engine, give
--activations f32.`
}

// Run computes and writes the file.
func (c *logitsCmd) Run(ctx context.Context, inv *invocation) error {
	if c.Decode < 0 {
		return usagef("--decode %d: must be 0 or more", c.Decode)
	}
	if err := c.check(); err != nil {
		return err
	}
	if err := checkOutput(c.Out); err != nil {
		return err
	}
	data, err := readInput(inv, c.IDs)
	if err != nil {
		return fmt.Errorf("the ids cannot be read: %w", err)
	}
	prompts, err := parseNamedIDs(data)
	if err != nil {
		return fmt.Errorf("%s: %w", c.IDs, err)
	}
	s, err := openSession(ctx, inv, &c.engineFlags)
	if err != nil {
		return err
	}
	return errors.Join(c.logits(ctx, inv, s, prompts), s.close())
}

func (c *logitsCmd) logits(ctx context.Context, inv *invocation, s *session, prompts []namedIDs) error {
	for _, p := range prompts {
		if err := checkVocab(p.ids, s.engine.Model().VocabSize); err != nil {
			return fmt.Errorf("%s: the ids of %q: %w", c.IDs, p.name, err)
		}
	}
	seq, err := s.engine.NewSequence(ctx)
	if err != nil {
		return err
	}
	defer seq.Close()
	bar := newProgress(inv)
	defer bar.clear()
	var (
		tensors []safetensors.Tensor
		names   []string
		tokens  int
	)
	for i, p := range prompts {
		if err := seq.Reset(ctx); err != nil {
			return err
		}
		of, err := c.prompt(ctx, s, seq, p)
		if err != nil {
			return fmt.Errorf("the ids of %q: %w", p.name, err)
		}
		tensors = append(tensors, of...)
		names = append(names, p.name)
		tokens += len(p.ids) + c.Decode
		bar.update("logits", int64(i+1), int64(len(prompts)), formatCount)
	}
	bar.clear()
	if err := safetensors.WriteFile(c.Out, tensors, nil); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(inv.stdout, map[string]any{"out": c.Out, "names": names, "tokens": tokens})
	}
	inv.say("wrote %s of %s to %s", counted(int64(len(tensors)), "tensor"), counted(int64(len(prompts)), "prompt"), c.Out)
	return nil
}

// prompt returns the tensors of one prompt; the sequence is empty.
func (c *logitsCmd) prompt(ctx context.Context, s *session, seq *actors.Sequence, p namedIDs) ([]safetensors.Tensor, error) {
	ctx, end := s.span(ctx, "moeflux.prompt")
	defer end()
	m, rows := s.engine.Model(), len(p.ids)
	out, err := seq.EvalChunk(ctx, actors.Chunk{Tokens: p.ids, Logits: actors.AllLogits, Hidden: c.Hidden, Routing: c.Routing})
	if err != nil {
		return nil, err
	}
	tensors := []safetensors.Tensor{f32Tensor(p.name+".logits", out.Logits, rows, m.VocabSize)}
	if c.Hidden {
		tensors = append(tensors, f32Tensor(p.name+".hidden", out.Hidden, m.NumHiddenLayers+1, rows, m.HiddenSize))
	}
	if c.Routing {
		topK, layers := s.engine.Info().TopK, len(m.MoELayers())
		tensors = append(tensors,
			i32Tensor(p.name+".router_idx", out.Picks, layers, rows, topK),
			f32Tensor(p.name+".router_weight", out.Weights, layers, rows, topK))
	}
	if c.Decode == 0 {
		return tensors, nil
	}
	ids, logits := make([]int32, 0, c.Decode), make([]float32, 0, c.Decode*m.VocabSize)
	last, greedy := out.Logits[(rows-1)*m.VocabSize:], sample.New(sample.Options{})
	for range c.Decode {
		id, err := greedy.Next(last, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("after %d decoded ids: %w", len(ids), err)
		}
		if last, err = seq.Eval(ctx, []int32{id}); err != nil {
			return nil, fmt.Errorf("after %d decoded ids: %w", len(ids), err)
		}
		ids, logits = append(ids, id), append(logits, last...)
	}
	return append(tensors,
		i32Tensor(p.name+".decode_ids", ids, c.Decode),
		f32Tensor(p.name+".decode_logits", logits, c.Decode, m.VocabSize)), nil
}

func f32Tensor(name string, x []float32, shape ...int) safetensors.Tensor {
	data := make([]byte, 0, 4*len(x))
	for _, v := range x {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: shape, Data: data}
}

func i32Tensor(name string, x []int32, shape ...int) safetensors.Tensor {
	data := make([]byte, 0, 4*len(x))
	for _, v := range x {
		data = binary.LittleEndian.AppendUint32(data, uint32(v))
	}
	return safetensors.Tensor{Name: name, DType: safetensors.I32, Shape: shape, Data: data}
}
