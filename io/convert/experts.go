package convert

import (
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
)

// layerExperts is where the routed experts of one layer are in the source.
type layerExperts struct {
	layer          int
	gate, up, down projection
}

// projection is one matrix of every expert of a layer.
type projection struct {
	found
	// expert returns the arrays of one expert's matrix.
	expert func(e int) parts
}

// layout returns the record that the layer's experts become.
func (l *layerExperts) layout(cfg *model.Config) model.ExpertLayout {
	return model.NewExpertLayout(cfg.HiddenSize, cfg.MoEIntermediateSize, l.gate.format, l.up.format, l.down.format)
}

// blocks returns the record of one expert, block after block.
func (l *layerExperts) blocks(e int) ([]block, error) {
	var out []block
	for _, p := range []*projection{&l.gate, &l.up, &l.down} {
		b, err := p.blocks("", p.expert(e))
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	return out, nil
}

// findExperts finds a layer's experts in whichever of three forms the source has: stacked by projection
// (mlp.switch_mlp.gate_proj [E, I, H], quantised or not), gate and up fused (mlp.experts.gate_up_proj [E, 2I, H], gate
// first), or one tensor an expert (mlp.experts.0.gate_proj.weight [I, H]).
func findExperts(src *source, cfg *model.Config, layer, bits int) (*layerExperts, error) {
	p := fmt.Sprintf("model.layers.%d.mlp.", layer)
	x := expertFinder{src: src, n: cfg.NumExperts, bits: bits}
	h, i := cfg.HiddenSize, cfg.MoEIntermediateSize
	l := &layerExperts{layer: layer}
	switch {
	case src.has(p + "switch_mlp.gate_proj.weight"):
		l.gate = x.stacked(p+"switch_mlp.gate_proj", i, h)
		l.up = x.stacked(p+"switch_mlp.up_proj", i, h)
		l.down = x.stacked(p+"switch_mlp.down_proj", h, i)
	case src.has(p + "experts.gate_up_proj"):
		l.gate, l.up = x.fused(p+"experts.gate_up_proj", i, h)
		l.down = x.bare(p+"experts.down_proj", h, i)
	case src.has(p + "experts.0.gate_proj.weight"):
		l.gate = x.single(p+"experts.", "gate_proj", i, h)
		l.up = x.single(p+"experts.", "up_proj", i, h)
		l.down = x.single(p+"experts.", "down_proj", h, i)
	default:
		return nil, &SourceError{Tensor: p + "switch_mlp.gate_proj.weight", Got: "missing",
			Want: "it, experts.gate_up_proj or experts.0.gate_proj.weight"}
	}
	return l, x.err
}

// expertFinder takes experts of one layer and keeps the first error.
type expertFinder struct {
	src  *source
	n    int // experts
	bits int
	err  error
}

func (x *expertFinder) note(err error) {
	if x.err == nil {
		x.err = err
	}
}

// stacked takes a matrix whose first axis counts the experts.
func (x *expertFinder) stacked(name string, rows, cols int) projection {
	m, err := takeMatrix(x.src, name, []int{x.n}, rows, cols, x.bits)
	x.note(err)
	return projection{found: m, expert: func(e int) parts {
		return parts{weight: x.slice(m.weight, e), scales: x.slice(m.scales, e), biases: x.slice(m.biases, e)}
	}}
}

// slice returns one expert's part of a stacked tensor.
func (x *expertFinder) slice(t safetensors.Tensor, e int) safetensors.Tensor {
	n := len(t.Data) / x.n
	t.Data = t.Data[e*n : (e+1)*n]
	return t
}

// bare takes a stacked matrix whose name does not end in ".weight", which is how fused experts come.
func (x *expertFinder) bare(name string, rows, cols int) projection {
	t, err := x.src.takeFloat(name, x.n, rows, cols)
	x.note(err)
	m := found{parts: parts{weight: t}, rows: rows, cols: cols, format: targetFormat(t.DType, cols, x.bits)}
	return projection{found: m, expert: func(e int) parts { return parts{weight: x.slice(t, e)} }}
}

// fused takes gate and up from one tensor: of each expert's rows the first half is the gate projection's.
func (x *expertFinder) fused(name string, rows, cols int) (gate, up projection) {
	t, err := x.src.takeFloat(name, x.n, 2*rows, cols)
	x.note(err)
	m := found{parts: parts{weight: t}, rows: rows, cols: cols, format: targetFormat(t.DType, cols, x.bits)}
	half := func(which int) func(e int) parts {
		return func(e int) parts {
			s := x.slice(t, e)
			n := len(s.Data) / 2
			s.Data = s.Data[which*n : (which+1)*n]
			return parts{weight: s}
		}
	}
	return projection{found: m, expert: half(0)}, projection{found: m, expert: half(1)}
}

// single takes one tensor an expert, all of one type.
func (x *expertFinder) single(prefix, name string, rows, cols int) projection {
	all := make([]found, x.n)
	for e := range all {
		m, err := takeMatrix(x.src, fmt.Sprintf("%s%d.%s", prefix, e, name), nil, rows, cols, x.bits)
		if err != nil {
			x.note(err)
			return projection{}
		}
		all[e] = m
	}
	if odd := slices.IndexFunc(all, func(m found) bool {
		return m.weight.DType != all[0].weight.DType || m.format != all[0].format
	}); odd >= 0 {
		x.note(&SourceError{Tensor: all[odd].weight.Name, Got: fmt.Sprintf("%s as %v", all[odd].weight.DType, all[odd].format),
			Want: fmt.Sprintf("%s as %v, as of expert 0", all[0].weight.DType, all[0].format)})
	}
	return projection{found: all[0], expert: func(e int) parts { return all[e].parts }}
}
