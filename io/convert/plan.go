package convert

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// groupSize is what matrices are quantised in, as mlx-lm does by default.
const groupSize = 64

// align is the boundary that each tensor of model_weights.bin begins at.
const align = 64

// plan is all that a conversion will write of the tensors, checked against the source before anything is written.
type plan struct {
	cfg       *model.Config
	dense     []placed // in the order of the file
	denseSize int64
	layers    []*layerExperts
	layout    model.ExpertLayout
	codes     quant.Format // of the matrices outside experts but gates, for the manifest; zero if they are not quantised
}

// placed is a block of model_weights.bin.
type placed struct {
	block
	offset int64
}

// makePlan accounts for every tensor of the source. All that is wrong is reported together.
func makePlan(cfg *model.Config, src *source, bits int) (*plan, error) {
	f, err := findFamily(cfg.Arch)
	if err != nil {
		return nil, err
	}
	specs := f.dense(cfg)
	if f.zeroCentred {
		if err := src.detectRaw(specs); err != nil {
			return nil, err
		}
	}
	p := &plan{cfg: cfg}
	var errs []error
	for _, s := range specs {
		blocks, err := denseBlocks(src, f, s, bits)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, b := range blocks {
			p.dense = append(p.dense, placed{block: b})
			if b.dtype == safetensors.U32 && s.role == matrix {
				p.codes = b.format
			}
		}
	}
	if cfg.TieWordEmbeddings {
		// The head is the embedding: a copy of it in the source is not written again.
		for _, part := range []string{"weight", "scales", "biases"} {
			src.skip("lm_head." + part)
		}
	}
	for _, i := range cfg.MoELayers() {
		l, err := findExperts(src, cfg, i, bits)
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
	return p, p.sameLayout()
}

// joinSome joins errors, but not thousands of them.
func joinSome(errs []error) error {
	const most = 30
	if len(errs) > most {
		rest := len(errs) - most
		errs = append(errs[:most:most], fmt.Errorf("convert: and %d errors more", rest))
	}
	return errors.Join(errs...)
}

// place orders the dense blocks by name, a matrix's scales and biases behind its codes, and gives them their offsets.
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

// sameLayout sets the experts' layout, which one File of io/expertfile has for all layers.
func (p *plan) sameLayout() error {
	for i, l := range p.layers {
		got := l.layout(p.cfg)
		if i == 0 {
			p.layout = got
		} else if got != p.layout {
			return fmt.Errorf("convert: experts of layer %d are stored as %v, %v, %v, those of layer %d as %v, %v, %v: one format for all layers is needed",
				l.layer, got.Gate.Format, got.Up.Format, got.Down.Format,
				p.layers[0].layer, p.layout.Gate.Format, p.layout.Up.Format, p.layout.Down.Format)
		}
	}
	return nil
}

// layerBytes returns the size of each layer's expert file.
func (p *plan) layerBytes() int64 { return int64(p.layout.Bytes) * int64(p.cfg.NumExperts) }

// denseBlocks returns what a spec becomes in model_weights.bin.
func denseBlocks(src *source, f *family, s spec, bits int) ([]block, error) {
	switch s.role {
	case matrix, gateMatrix:
		if s.role == gateMatrix && bits != 0 {
			bits = 8
		}
		return matrixBlocks(src, s, bits)
	case conv:
		t, err := takeConv(src, s)
		if err != nil {
			return nil, err
		}
		return floatBlock(s.name, t, []int{s.rows, s.cols, 1}, false, false)
	default:
		t, err := src.takeFloat(s.name, s.rows)
		if err != nil {
			return nil, err
		}
		shift := s.role == norm && f.zeroCentred && src.raw
		return floatBlock(s.name, t, []int{s.rows}, shift, s.role == vectorF32)
	}
}

// takeConv takes a convolution in either shape; the taps of a channel are contiguous in both.
func takeConv(src *source, s spec) (safetensors.Tensor, error) {
	if src.raw {
		return src.takeFloat(s.name, s.rows, 1, s.cols)
	}
	return src.takeFloat(s.name, s.rows, s.cols, 1)
}

// floatBlock keeps numbers as they are, except that F16, for which there is no kernel, becomes F32, and what is
// changed by one is kept exactly.
func floatBlock(name string, t safetensors.Tensor, shape []int, shift, wide bool) ([]block, error) {
	dtype, o := t.DType, copyBytes
	switch {
	case shift:
		dtype, o = safetensors.F32, widenShift
	case t.DType == safetensors.F16 || wide && t.DType != safetensors.F32:
		dtype, o = safetensors.F32, widen
	}
	b, err := newBlock(name, dtype, shape, o, quant.Format{}, t)
	return []block{b}, err
}

// matrixBlocks returns a matrix of model_weights.bin: one block, or codes, scales and biases.
func matrixBlocks(src *source, s spec, bits int) ([]block, error) {
	m, err := takeMatrix(src, s.name, nil, s.rows, s.cols, bits)
	if err != nil {
		return nil, err
	}
	return m.blocks(s.name, m.parts)
}

// parts are the arrays of one matrix in the source; scales and biases only of a quantised one.
type parts struct{ weight, scales, biases safetensors.Tensor }

// found is a matrix, or a stack of them, found in the source, and what becomes of it.
type found struct {
	parts
	rows, cols int
	quantised  bool         // in the source
	format     quant.Format // in the target
}

// takeMatrix takes the matrix called name (without ".weight"), with further axes before its two given by stack. Where it is
// not quantised yet and bits is not 0, it will be, if groups divide its inputs: as mlx-lm chooses.
func takeMatrix(src *source, name string, stack []int, rows, cols, bits int) (found, error) {
	full := name + ".weight"
	t, ok := src.peek(full)
	if !ok {
		_, err := src.take(full, append(slices.Clone(stack), rows, cols)...)
		return found{}, err
	}
	if t.DType == safetensors.U32 {
		return takeCodes(src, name, stack, rows, cols)
	}
	t, err := src.takeFloat(full, append(slices.Clone(stack), rows, cols)...)
	if err != nil {
		return found{}, err
	}
	return found{parts: parts{weight: t}, rows: rows, cols: cols, format: targetFormat(t.DType, cols, bits)}, nil
}

// targetFormat returns how a matrix that is not quantised is stored.
func targetFormat(d safetensors.DType, cols, bits int) quant.Format {
	switch {
	case bits != 0 && cols%groupSize == 0:
		return quant.Format{Kind: quant.Affine, Bits: bits, Group: groupSize}
	case d == safetensors.BF16:
		return quant.Format{Kind: quant.BF16}
	default:
		return quant.Format{Kind: quant.F32}
	}
}

// takeCodes takes a matrix that is quantised in the source. Bits and group follow from the shapes.
func takeCodes(src *source, name string, stack []int, rows, cols int) (found, error) {
	weight, _ := src.peek(name + ".weight")
	scales, ok := src.peek(name + ".scales")
	words, groups := lastAxis(weight.Shape), lastAxis(scales.Shape)
	format, err := quant.FromShapes(cols, words, groups)
	if !ok || err != nil {
		return found{}, &SourceError{Tensor: weight.Name, Got: fmt.Sprintf("U32 %v with scales %v", weight.Shape, scales.Shape),
			Want: fmt.Sprintf("2-, 4- or 8-bit codes of %d columns in groups of 32, 64 or 128", cols)}
	}
	out := found{rows: rows, cols: cols, quantised: true, format: format}
	shape := append(slices.Clone(stack), rows, 0)
	for _, p := range []struct {
		dst   *safetensors.Tensor
		part  string
		last  int
		dtype safetensors.DType
	}{
		{&out.weight, ".weight", words, safetensors.U32},
		{&out.scales, ".scales", groups, safetensors.BF16},
		{&out.biases, ".biases", groups, safetensors.BF16},
	} {
		shape[len(shape)-1] = p.last
		t, err := src.take(name+p.part, shape...)
		if err == nil && t.DType != p.dtype {
			err = &SourceError{Tensor: t.Name, Got: fmt.Sprintf("%s %v", t.DType, t.Shape), Want: string(p.dtype)}
		}
		if err != nil {
			return found{}, err
		}
		*p.dst = t
	}
	return out, nil
}

func lastAxis(shape []int) int {
	if len(shape) == 0 {
		return 0
	}
	return shape[len(shape)-1]
}

// blocks returns how one matrix is written under name, from its arrays in the source.
func (m *found) blocks(name string, p parts) ([]block, error) {
	if m.format.Kind != quant.Affine {
		o, dtype := copyBytes, p.weight.DType
		if m.format.Kind == quant.F32 && dtype != safetensors.F32 {
			o, dtype = widen, safetensors.F32
		}
		b, err := newBlock(name+".weight", dtype, []int{m.rows, m.cols}, o, m.format, p.weight)
		return []block{b}, err
	}
	ops, from := [3]op{quantCodes, quantScales, quantBiases}, [3]safetensors.Tensor{p.weight, p.weight, p.weight}
	if m.quantised {
		ops, from = [3]op{}, [3]safetensors.Tensor{p.weight, p.scales, p.biases}
	}
	groups := []int{m.rows, m.cols / m.format.Group}
	var out []block
	for i, a := range []struct {
		part  string
		dtype safetensors.DType
		shape []int
	}{
		{".weight", safetensors.U32, []int{m.rows, m.cols * m.format.Bits / 32}},
		{".scales", safetensors.BF16, groups},
		{".biases", safetensors.BF16, groups},
	} {
		b, err := newBlock(name+a.part, a.dtype, a.shape, ops[i], m.format, from[i])
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}
