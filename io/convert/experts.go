package convert

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// layerExperts says where the routed experts of one layer lie in the source.
type layerExperts struct {
	layer          int
	gate, up, down projection
	pad            int // bytes after each record, so that those of all layers have as many
}

// projection is one matrix of every expert of a layer.
type projection struct {
	format quant.Format // of the target
	// expert returns the rows of one expert.
	expert func(e int) *numbers
}

// projections returns gate, up and down.
func (l *layerExperts) projections() [3]*projection {
	return [3]*projection{&l.gate, &l.up, &l.down}
}

// layout returns the layout of the records that the layer's experts become.
func (l *layerExperts) layout(cfg *model.Config) model.ExpertLayout {
	return model.NewExpertLayout(cfg.HiddenSize, cfg.MoEIntermediateSize, l.gate.format, l.up.format, l.down.format)
}

// blocks returns the record of one expert, block after block.
func (l *layerExperts) blocks(e int) ([]block, error) {
	var out []block
	for _, p := range l.projections() {
		b, err := p.expert(e).blocks("", p.format.Layout)
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	if l.pad > 0 {
		out = append(out, block{name: "padding", op: zeros, bytes: int64(l.pad), src: l.down.expert(e)})
	}
	return out, nil
}

// findExperts finds a layer's experts in any of five forms: stacked by projection
// (mlp.switch_mlp.gate_proj [E, I, H], quantised or not), gate and up fused
// (mlp.experts.gate_up_proj or mlp.switch_mlp.gate_up_proj [E, 2I, H], gate first), in turns and
// with inputs first ([E, H, 2I], where the family is trained so), in turns in MXFP4
// (mlp.experts.gate_up_proj_blocks, see takeBlocks), or one matrix for each expert
// (mlp.experts.0.gate_proj [I, H]). Matrices that can have the wanted layout get it.
func findExperts(src *source, cfg *model.Config, layer int, w wish, layout quant.Layout) (*layerExperts, error) {
	p := fmt.Sprintf("model.layers.%d.mlp.", layer)
	x := expertFinder{src: src, n: cfg.NumExperts, wish: w}
	h, i := cfg.HiddenSize, cfg.MoEIntermediateSize
	l := &layerExperts{layer: layer}
	switch {
	case src.has(p + "switch_mlp.gate_proj.weight"):
		l.gate = x.stacked(p+"switch_mlp.gate_proj", i, h)
		l.up = x.stacked(p+"switch_mlp.up_proj", i, h)
		l.down = x.stacked(p+"switch_mlp.down_proj", h, i)
	case src.has(p + "switch_mlp.gate_up_proj.weight"):
		both, err := takeMatrix(src, p+"switch_mlp.gate_up_proj", []int{x.n}, 2*i, h, w)
		x.note(err)
		l.gate, l.up = x.cut(both, 2*i, 0, i), x.cut(both, 2*i, i, i)
		l.down = x.stacked(p+"switch_mlp.down_proj", h, i)
	case src.has(p + "experts.gate_up_proj_blocks"):
		both := x.blocks(p+"experts.gate_up_proj", 2*i, h)
		l.gate, l.up = x.turns(both, i, 0), x.turns(both, i, 1)
		l.down = x.cut(x.blocks(p+"experts.down_proj", h, i), h, 0, h)
	case src.has(p + "experts.gate_up_proj"):
		bare, cut := x.bare, func(m *found, which int) projection { return x.cut(m, 2*i, which*i, i) }
		if cfg.Arch.Checkpoint().InTurns {
			bare, cut = x.turned, func(m *found, which int) projection { return x.turns(m, i, which) }
		}
		both := bare(p+"experts.gate_up_proj", 2*i, h)
		l.gate, l.up = cut(both, 0), cut(both, 1)
		l.down = x.cut(bare(p+"experts.down_proj", h, i), h, 0, h)
	case src.hasMatrix(p + "experts.0.gate_proj"):
		l.gate = x.single(p+"experts.", "gate_proj", i, h)
		l.up = x.single(p+"experts.", "up_proj", i, h)
		l.down = x.single(p+"experts.", "down_proj", h, i)
	default:
		return nil, &SourceError{Tensor: p + "switch_mlp.gate_proj.weight", Got: "missing",
			Want: "it, experts.gate_up_proj or experts.0.gate_proj.weight"}
	}
	if x.err != nil {
		return nil, x.err
	}
	l.gate.format, l.up.format, l.down.format = l.gate.format.In(layout, i), l.up.format.In(layout, i), l.down.format.In(layout, h)
	return l, nil
}

// expertFinder takes the experts of one layer and keeps the first error.
type expertFinder struct {
	src  *source
	n    int // experts
	wish wish
	err  error
}

func (x *expertFinder) note(err error) {
	if x.err == nil {
		x.err = err
	}
}

// cut returns the projection that has n rows of each expert, from first on among the expert's
// perExpert rows of m.
func (x *expertFinder) cut(m *found, perExpert, first, n int) projection {
	if m == nil {
		return projection{}
	}
	return projection{format: m.format, expert: func(e int) *numbers {
		return &numbers{m: m, rows: []rowRange{{first: e*perExpert + first, n: n}}}
	}}
}

// stacked takes a matrix whose first axis is the expert.
func (x *expertFinder) stacked(name string, rows, cols int) projection {
	m, err := takeMatrix(x.src, name, []int{x.n}, rows, cols, x.wish)
	x.note(err)
	return x.cut(m, rows, 0, rows)
}

// bare takes a stacked matrix whose name does not end in ".weight", as in checkpoints with fused
// experts. It returns nil after noting an error.
func (x *expertFinder) bare(name string, rows, cols int) *found {
	t, err := x.src.takeFloat(name, x.n, rows, cols)
	if err != nil {
		x.note(err)
		return nil
	}
	m := &found{rows: x.n * rows, cols: cols, weight: t}
	m.choose(x.wish)
	return m
}

// turned is bare for a tensor whose second axis is the inputs.
func (x *expertFinder) turned(name string, rows, cols int) *found {
	t, err := x.src.takeFloat(name, x.n, cols, rows)
	if err != nil {
		x.note(err)
		return nil
	}
	m := &found{enc: inputsFirst, rows: x.n * rows, cols: cols, perStack: rows, weight: t}
	m.choose(x.wish)
	return m
}

// single takes one matrix for each expert, all of one type.
func (x *expertFinder) single(prefix, name string, rows, cols int) projection {
	all := make([]*found, x.n)
	for e := range all {
		m, err := takeMatrix(x.src, fmt.Sprintf("%s%d.%s", prefix, e, name), nil, rows, cols, x.wish)
		if err != nil {
			x.note(err)
			return projection{}
		}
		all[e] = m
		if first := all[0]; m.format != first.format || m.weight.DType != first.weight.DType {
			x.note(&SourceError{Tensor: m.weight.Name, Got: fmt.Sprintf("%s as %v", m.weight.DType, m.format),
				Want: fmt.Sprintf("%s as %v, as of expert 0", first.weight.DType, first.format)})
		}
	}
	return projection{format: all[0].format, expert: func(e int) *numbers { return all[e].all() }}
}
