package eval

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/stages/sample"
)

// LogitsOptions say what Logits returns beside the logits.
type LogitsOptions struct {
	Hidden  bool // the residual stream before each layer and after the last
	Routing bool // experts and weights, heaviest first
	Decode  int  // ids to decode greedily after each prompt, with their logits
}

// Logits evaluates each prompt with an empty state and returns its tensors, T being its length:
// P.logits F32 [T, vocab]; P.hidden F32 [layers+1, T, hidden]; P.router_idx I32 and P.router_weight
// F32 [layers with experts, T, k]; P.decode_ids I32 [N] and P.decode_logits F32 [N, vocab], where
// row i is after feeding id i. Decoding does not stop at end-of-text ids. All ids must be in the
// vocabulary. progress, which may be nil, is told how many prompts are done.
func Logits(ctx context.Context, e *actors.Engine, span Span, prompts []Prompt, o LogitsOptions, progress func(done, total int)) ([]safetensors.Tensor, error) {
	seq, err := e.NewSequence(ctx)
	if err != nil {
		return nil, err
	}
	defer seq.Close()
	var all []safetensors.Tensor
	for i, p := range prompts {
		if err := seq.Reset(ctx); err != nil {
			return nil, err
		}
		of, err := promptLogits(ctx, e, span, seq, p, o)
		if err != nil {
			return nil, fmt.Errorf("the ids of %q: %w", p.Name, err)
		}
		all = append(all, of...)
		if progress != nil {
			progress(i+1, len(prompts))
		}
	}
	return all, nil
}

// promptLogits returns the tensors of one prompt; the sequence is empty.
func promptLogits(ctx context.Context, e *actors.Engine, span Span, seq *actors.Sequence, p Prompt, o LogitsOptions) ([]safetensors.Tensor, error) {
	ctx, end := span(ctx, "moeflux.prompt")
	defer end()
	m, rows := e.Model(), len(p.IDs)
	out, err := seq.EvalChunk(ctx, actors.Chunk{Tokens: p.IDs, Logits: actors.AllLogits, Hidden: o.Hidden, Routing: o.Routing})
	if err != nil {
		return nil, err
	}
	tensors := []safetensors.Tensor{f32Tensor(p.Name+".logits", out.Logits, rows, m.VocabSize)}
	if o.Hidden {
		tensors = append(tensors, f32Tensor(p.Name+".hidden", out.Hidden, m.NumHiddenLayers+1, rows, m.HiddenSize))
	}
	if o.Routing {
		topK, layers := e.Info().TopK, len(m.MoELayers())
		tensors = append(tensors,
			i32Tensor(p.Name+".router_idx", out.Picks, layers, rows, topK),
			f32Tensor(p.Name+".router_weight", out.Weights, layers, rows, topK))
	}
	if o.Decode == 0 {
		return tensors, nil
	}
	ids, logits := make([]int32, 0, o.Decode), make([]float32, 0, o.Decode*m.VocabSize)
	last, greedy := out.Logits[(rows-1)*m.VocabSize:], sample.New(sample.Options{})
	for range o.Decode {
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
		i32Tensor(p.Name+".decode_ids", ids, o.Decode),
		f32Tensor(p.Name+".decode_logits", logits, o.Decode, m.VocabSize)), nil
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
