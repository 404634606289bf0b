package convert

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// groupSize is the size of the groups in which matrices are quantised, mlx-lm's default.
const groupSize = 64

// align is the boundary that each tensor of model_weights.bin begins at.
const align = 64

// plan is everything that a conversion will write of the tensors. It is checked against the source
// before anything is written.
type plan struct {
	cfg       *model.Config
	dense     []placed // in the order of the file
	denseSize int64
	layers    []*layerExperts
	// layouts of records, by layer: all have the same bytes
	layouts     map[int]model.ExpertLayout
	recordBytes int
	// of the matrices other than experts and gates, for the manifest; zero if they are not
	// quantised
	codes quant.Format
	left  left // of the source
	// what must hold of numbers in the source
	checks []check
}

// placed is a block of model_weights.bin.
type placed struct {
	block
	offset int64
}

// makePlan accounts for every tensor of the source. It reports all errors together.
func makePlan(cfg *model.Config, src *source, o Options) (*plan, error) {
	specs := dense(cfg, src)
	var err error
	switch c := cfg.Arch.Checkpoint(); {
	case src.gguf: // norms of such files hold the 1 that is added
	case c.AlwaysCentred:
		src.raw = true
	case c.CentredByMean:
		src.detectMean()
	case c.ZeroCentred:
		err = src.detectRaw(specs)
	}
	if err != nil {
		return nil, err
	}
	p := &plan{cfg: cfg, left: src.left}
	var errs []error
	for _, s := range specs {
		blocks, err := denseBlocks(src, s, o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, b := range blocks {
			p.dense = append(p.dense, placed{block: b})
			if b.codes() && s.role == matrix {
				p.codes = b.format
			}
		}
	}
	if cfg.TieWordEmbeddings {
		// The head is the embedding: a copy of it in the source is not written.
		for _, part := range []string{"weight", "scales", "biases"} {
			src.skip("lm_head." + part)
		}
	}
	for _, i := range cfg.MoELayers() {
		l, err := findExperts(src, cfg, i, o.expertWish(), o.layout())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.layers = append(p.layers, l)
	}
	errs = append(errs, src.leftover()...)
	if err := joinSome(errs); err != nil {
		return nil, err
	}
	p.place()
	p.checks = src.checks
	p.layOut()
	return p, nil
}

// joinSome joins errors, and counts those beyond a few.
func joinSome(errs []error) error {
	const most = 3
	if len(errs) > most {
		rest := len(errs) - most
		errs = append(errs[:most:most], fmt.Errorf("convert: and %d more", rest))
	}
	return errors.Join(errs...)
}

// place orders the dense blocks by name, with scales and biases after their codes, and assigns
// offsets.
func (p *plan) place() {
	matrix := func(b placed) string {
		return strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(b.name, ".weight"), ".scales"), ".biases")
	}
	slices.SortStableFunc(p.dense, func(a, b placed) int { return cmp.Compare(matrix(a), matrix(b)) })
	var at int64
	for i := range p.dense {
		at = (at + align - 1) / align * align
		p.dense[i].offset = at
		at += p.dense[i].bytes
	}
	p.denseSize = at
}

// layOut sets the layouts of records, and makes those of all layers as long as the longest.
func (p *plan) layOut() {
	p.layouts = map[int]model.ExpertLayout{}
	for _, l := range p.layers {
		p.layouts[l.layer] = l.layout(p.cfg)
		p.recordBytes = max(p.recordBytes, p.layouts[l.layer].Bytes)
	}
	for _, l := range p.layers {
		got := p.layouts[l.layer]
		l.pad = p.recordBytes - got.Bytes
		got.Bytes = p.recordBytes
		p.layouts[l.layer] = got
	}
}

// describe returns the content of layout.json.
func (p *plan) describe() expertfile.Layout {
	for _, l := range p.layers {
		if p.layouts[l.layer] != p.layouts[p.layers[0].layer] {
			return expertfile.DescribeLayers(p.cfg, p.layouts)
		}
	}
	return expertfile.Describe(p.cfg, p.layouts[p.layers[0].layer])
}

// checkShapes makes the checks of tensors that there says can be read. It reports a few errors.
func (p *plan) checkShapes(there func(safetensors.Tensor) bool) error {
	var errs []error
	for _, c := range p.checks {
		if there(c.tensor) {
			if err := c.run(); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return joinSome(errs)
}

// layerBytes returns the size of each layer's expert file.
func (p *plan) layerBytes() int64 { return int64(p.recordBytes) * int64(p.cfg.NumExperts) }

// denseBlocks returns what a spec becomes in model_weights.bin.
func denseBlocks(src *source, s spec, o Options) ([]block, error) {
	switch s.role {
	case matrix, gateMatrix, floatMatrix:
		bits, layout := o.Bits, o.layout()
		if s.byHead {
			layout = quant.Rows
		}
		switch {
		case s.role == floatMatrix:
			bits = 0
		case s.role == gateMatrix && bits != 0:
			bits = 8
		}
		x, err := s.find(src, wish{bits: bits})
		if err != nil {
			return nil, err
		}
		return x.blocks(s.name, layout)
	case conv:
		t, err := takeConv(src, s)
		if err != nil {
			return nil, err
		}
		return floatBlock(s.name, s.part(t), []int{s.rows, s.cols, 1}, copyBytes)
	default:
		t, err := s.take(src)
		if err != nil {
			return nil, err
		}
		o := copyBytes
		switch {
		case s.role == norm && src.raw:
			o = widenShift
		case s.role == decay && src.gguf:
			o = widenLog
		case s.role == decay:
			o = widen
		}
		return floatBlock(s.name, s.part(t), []int{s.rows}, o)
	}
}

// take takes a vector, or the one of which it is part.
func (s spec) take(src *source) (safetensors.Tensor, error) {
	name, shape := s.name, []int{s.rows}
	if s.from != nil {
		name, shape[0] = s.from.name, s.from.rows
	}
	if s.stack > 0 {
		shape = []int{s.stack, shape[0] / s.stack}
	}
	return src.takeFloat(name, shape...)
}

// part returns the numbers of a tensor that is no matrix, in the order that is asked for.
func (s spec) part(t safetensors.Tensor) *numbers {
	if s.from != nil {
		m := &found{rows: s.from.rows, cols: t.Elements() / s.from.rows, weight: t}
		return &numbers{m: m, rows: s.from.take}
	}
	m := &found{rows: s.rows, cols: t.Elements() / s.rows, weight: t}
	return m.all()
}

// find takes a matrix, or the rows of another matrix of which it consists.
func (s spec) find(src *source, w wish) (*numbers, error) {
	if s.from != nil {
		m, err := takeMatrix(src, s.from.name, nil, s.from.rows, s.cols, w)
		if err != nil {
			return nil, err
		}
		return s.order(&numbers{m: m, rows: s.from.take}), nil
	}
	var stack []int
	rows := s.rows
	if s.stack > 0 {
		stack, rows = []int{s.stack}, s.rows/s.stack
	}
	m, err := takeMatrix(src, s.name, stack, rows, s.cols, w)
	if err != nil {
		return nil, err
	}
	return s.order(m.all()), nil
}

// order has columns in the order of pieces. Blocks that are not within a piece are widened.
func (s spec) order(x *numbers) *numbers {
	x.pieces = s.pieces
	if b := x.m.format.Block(); b != nil && s.pieces != nil && s.pieces.width%b.Len != 0 {
		x.m.format = quant.F32
	}
	return x
}

// takeConv takes a convolution in either shape. The taps of a channel are contiguous in both.
func takeConv(src *source, s spec) (safetensors.Tensor, error) {
	if src.raw {
		return src.takeFloat(s.name, s.rows, 1, s.cols)
	}
	return src.takeFloat(s.name, s.rows, s.cols, 1)
}

// floatBlock keeps numbers as they are unless o says otherwise. F16, for which there are no
// kernels, becomes F32, and so do numbers that are computed, to keep them exact.
func floatBlock(name string, x *numbers, shape []int, o op) ([]block, error) {
	b := block{name: name, dtype: x.m.weight.DType, shape: shape, src: x, op: o}
	switch {
	case o == widen && b.dtype == safetensors.F32:
		b.op = copyBytes
	case o != copyBytes:
		b.dtype = safetensors.F32
	case b.dtype == safetensors.F16:
		b.dtype, b.op = safetensors.F32, widen
	}
	b, err := newBlock(b)
	return []block{b}, err
}
