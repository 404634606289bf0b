package dump

import (
	"context"
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/eval"
	"github.com/moeflux/moeflux-actor/io/safetensors"
)

// Request says what is dumped.
type Request struct {
	Texts  []eval.Prompt
	Layers string // as ParseLayers takes them
	// OneByOne feeds the tokens one at a time, as generation does, and not as a prompt. States are
	// those after each token then.
	OneByOne bool
	// Plain computes operations one by one that the device would compute together.
	Plain bool
	// Input is a file of hidden states from outside, "" for none: see ReadInputs. Each of the
	// layers reads them, and texts of the same names are in front of them.
	Input string
	// Only is a part that is computed by itself: "embedding" of Texts, "experts" or "head" of
	// Input; "" is whole layers.
	Only string
	// Experts and Weights are for "experts": without experts the router chooses, without weights
	// each has 1.
	Experts []int
	Weights []float32
}

// SettingError reports a request that contradicts itself or does not fit the model.
type SettingError struct{ Err error }

func (e *SettingError) Error() string { return e.Err.Error() }
func (e *SettingError) Unwrap() error { return e.Err }

func wrong(format string, args ...any) error { return &SettingError{fmt.Errorf(format, args...)} }

// Check reports what no model could make good.
func (r *Request) Check() error {
	switch {
	case r.Only != "" && r.Only != "embedding" && r.Only != "experts" && r.Only != "head":
		return wrong("there is no part %q; parts are embedding, experts, head", r.Only)
	case r.Only == "embedding" && (r.Input != "" || len(r.Texts) == 0):
		return wrong("the embedding is that of token ids, and of nothing else")
	case (r.Only == "experts" || r.Only == "head") && r.Input == "":
		return wrong("the part %s needs hidden states to read", r.Only)
	case r.Input == "" && len(r.Texts) == 0:
		return wrong("there are neither token ids nor hidden states")
	case r.OneByOne && (r.Input != "" || r.Only != ""):
		return wrong("only texts are fed one by one")
	case len(r.Experts) > 0 && r.Only != "experts":
		return wrong("experts are given to the part experts alone")
	case len(r.Weights) > 0 && len(r.Weights) != len(r.Experts):
		return wrong("there are %d weights for %d experts", len(r.Weights), len(r.Experts))
	}
	return nil
}

// Run computes what is asked for and returns its tensors, with the names of texts and inputs.
// progress, which may be nil, is told how many of these are done.
func Run(ctx context.Context, e *actors.Engine, span eval.Span, r Request, progress func(done, total int)) (all []safetensors.Tensor, names []string, err error) {
	if err := r.Check(); err != nil {
		return nil, nil, err
	}
	layers, err := ParseLayers(r.Layers, len(e.Model().Layers))
	if err != nil {
		return nil, nil, &SettingError{err}
	}
	for _, p := range r.Texts {
		if err := eval.CheckVocab(p.IDs, e.Model().VocabSize); err != nil {
			return nil, nil, fmt.Errorf("the ids of %q: %w", p.Name, err)
		}
	}
	inputs, err := r.inputs(e)
	if err != nil {
		return nil, nil, err
	}
	seq, err := e.NewSequence(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer seq.Close()
	x := &runner{e: e, seq: seq, request: &r, layers: layers}
	for i, in := range inputs {
		if err := seq.Reset(ctx); err != nil {
			return nil, nil, err
		}
		of, err := x.traced(ctx, span, in)
		if err != nil {
			return nil, nil, fmt.Errorf("%q: %w", in.Name, err)
		}
		all, names = append(all, of...), append(names, in.Name)
		if progress != nil {
			progress(i+1, len(inputs))
		}
	}
	return all, names, nil
}

// inputs returns what is dumped: texts, or hidden states with the texts in front of them.
func (r *Request) inputs(e *actors.Engine) ([]Input, error) {
	var all []Input
	if r.Input == "" {
		for _, p := range r.Texts {
			all = append(all, Input{Name: p.Name, Text: p.IDs})
		}
		return all, nil
	}
	all, err := ReadInputs(r.Input, e.Model().HiddenSize)
	if err != nil {
		return nil, err
	}
	for _, p := range r.Texts {
		found := false
		for i := range all {
			if all[i].Name == p.Name {
				all[i].Text, found = p.IDs, true
			}
		}
		if !found {
			return nil, wrong("there are no hidden states for the text %q", p.Name)
		}
	}
	if r.Only != "" && len(r.Texts) > 0 {
		return nil, errors.New("parts by themselves have no text in front of them")
	}
	return all, nil
}
