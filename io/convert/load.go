package convert

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/io/ggufmodel"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
)

// Loaded is a GGUF file as an engine computes with it: experts stay where they are, everything else
// is in memory as a conversion would have written it.
type Loaded struct {
	Config  *model.Config
	Weights *weights.File
	Experts *expertfile.File
}

// Load opens a GGUF file, or any of the files that one model is in, in place. Nothing is written.
// The caller closes Weights and Experts. Errors are those of Convert for the same file.
func Load(path string) (l *Loaded, err error) {
	err = guard(func() (err error) {
		l, err = load(path)
		return err
	})
	return l, err
}

func load(path string) (*Loaded, error) {
	in, err := openGGUF(path, Options{RowOrder: true})
	if err != nil {
		return nil, err
	}
	defer in.ckpt.Close() // experts are read from files of their own
	l := &Loaded{Config: in.cfg}
	j := &job{in: in, emit: newEmitter(in.ckpt.Drop)}
	manifest, err := j.manifest()
	if err != nil {
		return nil, err
	}
	l.Weights, err = weights.Make(path, manifest, in.plan.denseSize, func(data []byte) error { return j.dense(&memory{data}) })
	if err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	if l.Experts, err = expertfile.OpenSpread(in.cfg, in.spread()); err != nil {
		l.Weights.Close()
		return nil, fmt.Errorf("convert: %w", err)
	}
	return l, nil
}

// memory is what is left of memory to write to.
type memory struct{ left []byte }

func (m *memory) Write(p []byte) (int, error) {
	if len(p) > len(m.left) {
		panic(fmt.Sprintf("convert: %d bytes of weights for %d", len(p), len(m.left)))
	}
	m.left = m.left[copy(m.left, p):]
	return len(p), nil
}

// spread says where the experts of a file are.
func (in *input) spread() expertfile.Spread {
	m := in.ckpt.(*ggufTensors).model
	s := expertfile.Spread{Spans: map[int][3]expertfile.Span{}, Records: in.plan.layouts}
	for _, f := range m.File.Files() {
		s.Files = append(s.Files, f.Path())
	}
	for _, l := range in.plan.layers {
		s.Spans[l.layer] = expertSpans(m, l.layer, in.cfg.NumExperts)
	}
	return s
}

// expertSpans returns where gate, up and down of a layer are, which the plan has found.
func expertSpans(m *ggufmodel.Model, layer, experts int) [3]expertfile.Span {
	find := func(name string) *gguf.Tensor {
		return m.Tensor(fmt.Sprintf("model.layers.%d.mlp.switch_mlp.%s.weight", layer, name))
	}
	span := func(t *gguf.Tensor, piece, pieces int) expertfile.Span {
		stride := len(t.Data) / experts
		n := stride / pieces
		return expertfile.Span{File: t.Part, OffsetBytes: t.OffsetBytes + int64(piece*n), Stride: int64(stride), Bytes: n, Block: t.Type.Format}
	}
	down := span(find("down_proj"), 0, 1)
	if both := find("gate_up_proj"); both != nil {
		return [3]expertfile.Span{span(both, 0, 2), span(both, 1, 2), down}
	}
	return [3]expertfile.Span{span(find("gate_proj"), 0, 1), span(find("up_proj"), 0, 1), down}
}
