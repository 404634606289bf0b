package dump

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/eval"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
)

// Options say what is dumped of a text.
type Options struct {
	Layers []int
	// OneByOne feeds the tokens one at a time, as generation does, and not as a prompt. States are
	// those after each token then.
	OneByOne bool
}

// Text evaluates texts, each with an empty state, and returns the tensors of the layers. What a
// model computes in the expanded form of latent attention has no q_folded and no latents: these are
// left out. progress, which may be nil, is told how many texts are done.
func Text(ctx context.Context, e *actors.Engine, span eval.Span, texts []eval.Prompt, o Options, progress func(done, total int)) ([]safetensors.Tensor, error) {
	seq, err := e.NewSequence(ctx)
	if err != nil {
		return nil, err
	}
	defer seq.Close()
	var all []safetensors.Tensor
	for i, p := range texts {
		if err := seq.Reset(ctx); err != nil {
			return nil, err
		}
		of, err := one(ctx, e, span, seq, p, o)
		if err != nil {
			return nil, fmt.Errorf("the ids of %q: %w", p.Name, err)
		}
		all = append(all, of...)
		if progress != nil {
			progress(i+1, len(texts))
		}
	}
	return all, nil
}

// Metadata is what a file of dumps says of the engine that made it.
func Metadata(i actors.Info) map[string]string {
	return map[string]string{"model": i.Name, "exactness": i.Exactness}
}

// one returns the tensors of one text; the sequence is empty.
func one(ctx context.Context, e *actors.Engine, span eval.Span, seq *actors.Sequence, p eval.Prompt, o Options) ([]safetensors.Tensor, error) {
	ctx, end := span(ctx, "moeflux.prompt")
	defer end()
	n := len(p.IDs)
	if o.OneByOne {
		n = 1
	}
	t := &tensors{name: p.Name, model: e.Model(), topK: e.Info().TopK, axis: o.OneByOne}
	wants := actors.WantsOf(e.Model(), o.Layers)
	for at := 0; at < len(p.IDs); at += n {
		r, err := seq.EvalChunk(ctx, actors.Chunk{Tokens: p.IDs[at : at+n], Logits: actors.NoLogits, Dump: wants})
		if err != nil {
			return nil, err
		}
		t.add(r.Dump)
	}
	return t.list(), nil
}

// tensors gathers the dumps of a text's chunks.
type tensors struct {
	name   string
	model  *model.Config
	topK   int
	axis   bool // what a chunk has one of gets an axis of chunks
	chunks int
	all    []actors.Tensor
}

func (t *tensors) add(dump []actors.Tensor) {
	t.chunks++
	if t.all == nil {
		t.all = dump
		return
	}
	for i := range dump {
		t.all[i].Floats = append(t.all[i].Floats, dump[i].Floats...)
		t.all[i].Ints = append(t.all[i].Ints, dump[i].Ints...)
	}
}

// list returns what was gathered in the order of computation.
func (t *tensors) list() []safetensors.Tensor {
	slices.SortStableFunc(t.all, func(a, b actors.Tensor) int { return cmp.Compare(a.Layer, b.Layer) })
	var out []safetensors.Tensor
	for i := range t.all {
		x := &t.all[i]
		if x.Quantity.OfFoldedForm() && allNaN(x.Floats) {
			continue
		}
		shape := x.Quantity.Shape(t.model, x.Layer, t.topK)
		if !x.Quantity.OfChunk() || t.axis {
			shape = append([]int{x.Len() / max(x.Width, 1)}, shape...)
		}
		out = append(out, tensorOf(fmt.Sprintf("%s.layer.%d.%v", t.name, x.Layer, x.Quantity), x, shape))
	}
	return out
}

func allNaN(x []float32) bool {
	return !slices.ContainsFunc(x, func(v float32) bool { return v == v })
}

func tensorOf(name string, x *actors.Tensor, shape []int) safetensors.Tensor {
	out := safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: shape, Data: make([]byte, 0, 4*x.Len())}
	if x.Quantity.Ints() {
		out.DType = safetensors.I32
	}
	for _, v := range x.Ints {
		out.Data = binary.LittleEndian.AppendUint32(out.Data, uint32(v))
	}
	for _, v := range x.Floats {
		out.Data = binary.LittleEndian.AppendUint32(out.Data, math.Float32bits(v))
	}
	return out
}
