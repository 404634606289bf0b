package dump

import (
	"context"
	"slices"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/eval"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// runner computes a request's inputs one after the other.
type runner struct {
	e       *actors.Engine
	seq     *actors.Sequence // empty
	request *Request
	layers  []int
}

// traced is one input's tensors, computed in a span.
func (x *runner) traced(ctx context.Context, span eval.Span, in Input) ([]safetensors.Tensor, error) {
	ctx, end := span(ctx, "moeflux.prompt")
	defer end()
	switch {
	case x.request.Only == "embedding":
		return x.embedding(ctx, in)
	case x.request.Only == "head":
		return x.head(ctx, in)
	case x.request.Only == "experts":
		return x.experts(ctx, in)
	case in.Rows != nil:
		return x.given(ctx, in)
	}
	return x.text(ctx, in)
}

// text evaluates a text as a whole, or token by token.
func (x *runner) text(ctx context.Context, in Input) ([]safetensors.Tensor, error) {
	n := len(in.Text)
	if x.request.OneByOne {
		n = 1
	}
	t := x.tensors(in)
	t.axis = x.request.OneByOne
	wants, probe := actors.WantsOf(x.e.Model(), x.layers), x.stop()
	for at := 0; at < len(in.Text); at += n {
		r, err := x.eval(ctx, actors.Chunk{Tokens: in.Text[at : at+n], Logits: actors.NoLogits, Dump: wants, Probe: probe})
		if err != nil {
			return nil, err
		}
		t.add(r.Dump)
	}
	return t.list(), nil
}

// stop ends a text that is one chunk after the last layer that is wanted, since a pack may have no
// files of others. It is nil where all layers are computed.
func (x *runner) stop() *actors.Probe {
	last := x.layers[len(x.layers)-1]
	if x.request.OneByOne || last == len(x.e.Model().Layers)-1 {
		return nil
	}
	return &actors.Probe{Layers: upTo(last)}
}

// upTo returns the layers from the first one to another one.
func upTo(last int) (all []int) {
	for l := range last + 1 {
		all = append(all, l)
	}
	return all
}

func (x *runner) eval(ctx context.Context, c actors.Chunk) (*actors.Evaluated, error) {
	c.Plain = x.request.Plain
	return x.seq.EvalChunk(ctx, c)
}

// given runs the layers by themselves. A text in front of what they read goes through all layers up
// to the last of them.
func (x *runner) given(ctx context.Context, in Input) ([]safetensors.Tensor, error) {
	run := x.layers
	if len(in.Text) > 0 {
		run = upTo(x.layers[len(x.layers)-1])
	}
	r, err := x.eval(ctx, actors.Chunk{
		Tokens: append(slices.Clone(in.Text), make([]int32, x.rows(in))...), Logits: actors.NoLogits, Dump: actors.WantsOf(x.e.Model(), x.layers),
		Probe: &actors.Probe{Layers: run, At: x.layers, Given: in.Rows},
	})
	if err != nil {
		return nil, err
	}
	t := x.tensors(in)
	t.add(r.Dump)
	t.drop(len(in.Text))
	return t.list(), nil
}

// rows returns how many hidden states an input has.
func (x *runner) rows(in Input) int { return len(in.Rows) / x.e.Model().HiddenSize }

// embedding looks tokens up.
func (x *runner) embedding(ctx context.Context, in Input) ([]safetensors.Tensor, error) {
	w := actors.Want{Quantity: stages.DumpInput, Layer: len(x.e.Model().Layers)}
	r, err := x.eval(ctx, actors.Chunk{Tokens: in.Text, Logits: actors.NoLogits, Dump: []actors.Want{w}, Probe: &actors.Probe{}})
	if err != nil {
		return nil, err
	}
	return []safetensors.Tensor{tensorOf(in.Name+".embedding", &r.Dump[0], []int{len(in.Text), r.Dump[0].Width})}, nil
}

// head takes hidden states to logits.
func (x *runner) head(ctx context.Context, in Input) ([]safetensors.Tensor, error) {
	end, rows := len(x.e.Model().Layers), x.rows(in)
	w := actors.Want{Quantity: stages.DumpFinalNorm, Layer: end}
	r, err := x.eval(ctx, actors.Chunk{
		Tokens: make([]int32, rows), Logits: actors.AllLogits, Dump: []actors.Want{w}, Probe: &actors.Probe{At: []int{end}, Given: in.Rows},
	})
	if err != nil {
		return nil, err
	}
	logits := actors.Tensor{Width: len(r.Logits) / rows, Floats: r.Logits}
	return []safetensors.Tensor{
		tensorOf(in.Name+".final_norm", &r.Dump[0], []int{rows, r.Dump[0].Width}), tensorOf(in.Name+".logits", &logits, []int{rows, logits.Width}),
	}, nil
}

// experts applies experts, chosen by the request or by the router, to what they would read.
func (x *runner) experts(ctx context.Context, in Input) ([]safetensors.Tensor, error) {
	t := x.tensors(in)
	p := &actors.Probe{Layers: x.layers, At: x.layers, Given: in.Rows, Experts: true}
	if err := x.choose(p, x.rows(in)); err != nil {
		return nil, err
	}
	var wants []actors.Want
	for _, w := range actors.WantsOf(x.e.Model(), x.layers) {
		chosen := w.Quantity == stages.DumpPicks || w.Quantity == stages.DumpWeights || w.Quantity == stages.DumpScores
		if w.Quantity >= stages.DumpPostNorm && w.Quantity != stages.DumpOutput && !(chosen && p.Picks != nil) {
			wants = append(wants, w)
		}
	}
	r, err := x.eval(ctx, actors.Chunk{Tokens: make([]int32, x.rows(in)), Logits: actors.NoLogits, Dump: wants, Probe: p})
	if err != nil {
		return nil, err
	}
	t.add(r.Dump)
	if k := len(x.request.Experts); k > 0 {
		t.keepExperts(k)
	}
	return t.list(), nil
}

// choose fills in the request's experts, the same for each row. There are always as many as a token
// has: others fill up, with weights of 0.
func (x *runner) choose(p *actors.Probe, rows int) error {
	m, k, chosen := x.e.Model(), x.e.Info().TopK, x.request.Experts
	if len(chosen) == 0 {
		return nil
	}
	if len(chosen) > k {
		return wrong("there are %d experts, but a token of this model has %d", len(chosen), k)
	}
	picks, weights := make([]int32, 0, k), make([]float32, k)
	for i, e := range chosen {
		if e < 0 || e >= m.NumExperts || slices.Contains(picks, int32(e)) {
			return wrong("expert %d is outside the %d of a layer, or comes twice", e, m.NumExperts)
		}
		picks, weights[i] = append(picks, int32(e)), 1
		if len(x.request.Weights) > 0 {
			weights[i] = x.request.Weights[i]
		}
	}
	for e := int32(0); len(picks) < k; e++ {
		if !slices.Contains(picks, e) {
			picks = append(picks, e)
		}
	}
	for _, l := range x.layers {
		if m.Layers[l].FFN == model.DenseMLP {
			return wrong("layer %d has no experts", l)
		}
	}
	for range rows {
		p.Picks, p.Weights = append(p.Picks, picks...), append(p.Weights, weights...)
	}
	return nil
}

func (x *runner) tensors(in Input) *tensors {
	return &tensors{name: in.Name, model: x.e.Model(), topK: x.e.Info().TopK}
}

// Metadata is what a file of dumps says of the engine that made it.
func Metadata(i actors.Info) map[string]string {
	return map[string]string{"model": i.Name, "exactness": i.Exactness}
}
