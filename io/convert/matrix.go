package convert

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// wish says how matrices are to be quantised.
type wish struct {
	bits  int  // 0 means not at all
	again bool // matrices with more bits are requantised
}

// takeMatrix takes the matrix called name (without ".weight"); stack gives the axes before its two.
// If the matrix is not quantised and w asks for bits, it will be if groups divide its inputs, as
// mlx-lm does.
func takeMatrix(src *source, name string, stack []int, rows, cols int, w wish) (*found, error) {
	m, err := takeEncoded(src, name, stack, rows, cols)
	if err != nil {
		return nil, err
	}
	m.choose(w)
	return m, m.checkExact()
}

// takeEncoded takes a matrix in any encoding.
func takeEncoded(src *source, name string, stack []int, rows, cols int) (*found, error) {
	full := name + ".weight"
	shape := append(slices.Clone(stack), rows, cols)
	if src.has(name + ".weight_packed") {
		return takeCentred(src, name, stack, rows, cols)
	}
	t, ok := src.peek(full)
	if !ok {
		_, err := src.take(full, shape...)
		return nil, err
	}
	switch t.DType {
	case safetensors.U32:
		return takeCodes(src, name, stack, rows, cols)
	case safetensors.F8E4M3:
		if len(stack) == 0 {
			return takeTiles(src, name, rows, cols)
		}
	}
	if b := quant.BlockNamed(string(t.DType)); b != nil && b.Len > 1 {
		t, err := src.take(full, shape...)
		return &found{enc: packed, rows: product(stack) * rows, cols: cols, weight: t, block: b}, err
	}
	t, err := src.takeFloat(full, shape...)
	return &found{rows: product(stack) * rows, cols: cols, weight: t}, err
}

func product(n []int) int {
	p := 1
	for _, v := range n {
		p *= v
	}
	return p
}

// choose sets the target's format.
func (m *found) choose(w wish) {
	switch {
	case m.enc == affine || m.enc == centred:
		m.format = m.codes
		if w.again && w.bits != 0 && w.bits < m.codes.Bits {
			m.format.Bits = w.bits
		}
	case w.bits != 0 && m.cols%groupSize == 0:
		m.format = quant.Format{Kind: quant.Affine, Bits: w.bits, Group: groupSize}
	case m.enc == tiled || m.weight.DType == safetensors.BF16:
		m.format = quant.Format{Kind: quant.BF16}
	default:
		m.format = quant.Format{Kind: quant.F32}
	}
}

// checkExact refuses blocks that would be rounded though nobody asked for that.
func (m *found) checkExact() error {
	if m.enc != packed || m.format.Kind == quant.Affine || m.block.Exact() {
		return nil
	}
	return &SourceError{Tensor: m.weight.Name, Got: fmt.Sprintf("%s, which this program stores only in another form, rounded: "+
		"ask for that with --bits 4 or 8, or take a file of another type", m.block)}
}

// takeCodes takes a matrix of affine codes. Bits and group follow from the shapes.
func takeCodes(src *source, name string, stack []int, rows, cols int) (*found, error) {
	weight, _ := src.peek(name + ".weight")
	scales, ok := src.peek(name + ".scales")
	words, groups := lastAxis(weight.Shape), lastAxis(scales.Shape)
	format, err := quant.FromShapes(cols, words, groups)
	if !ok || err != nil {
		return nil, &SourceError{Tensor: weight.Name, Got: fmt.Sprintf("U32 %v with scales %v", weight.Shape, scales.Shape),
			Want: fmt.Sprintf("2-, 4- or 8-bit codes of %d columns in groups of 32, 64 or 128", cols)}
	}
	m := &found{enc: affine, rows: product(stack) * rows, cols: cols, codes: format}
	shape := append(slices.Clone(stack), rows)
	for _, p := range []struct {
		dst   *safetensors.Tensor
		part  string
		last  int
		dtype safetensors.DType
	}{
		{&m.weight, ".weight", words, safetensors.U32},
		{&m.scales, ".scales", groups, safetensors.BF16},
		{&m.biases, ".biases", groups, safetensors.BF16},
	} {
		if *p.dst, err = takeTyped(src, name+p.part, p.dtype, append(shape[:len(shape):len(shape)], p.last)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// takeTyped takes a tensor of one element type.
func takeTyped(src *source, name string, want safetensors.DType, shape []int) (safetensors.Tensor, error) {
	t, err := src.take(name, shape...)
	if err == nil && t.DType != want {
		err = &SourceError{Tensor: t.Name, Got: fmt.Sprintf("%s %v", t.DType, t.Shape), Want: string(want)}
	}
	return t, err
}

func lastAxis(shape []int) int {
	if len(shape) == 0 {
		return 0
	}
	return shape[len(shape)-1]
}

// takeCentred takes a matrix of compressed-tensors: name.weight_packed, I32 words of eight 4-bit
// codes, lowest first; name.weight_scale; and name.weight_shape, which repeats rows and columns. A
// code q stands for (q-8)·scale.
func takeCentred(src *source, name string, stack []int, rows, cols int) (*found, error) {
	packed, _ := src.peek(name + ".weight_packed")
	scales, ok := src.peek(name + ".weight_scale")
	words, groups := lastAxis(packed.Shape), lastAxis(scales.Shape)
	format, err := quant.FromShapes(cols, words, groups)
	if !ok || err != nil || format.Bits != 4 || len(stack) > 0 {
		return nil, &SourceError{Tensor: packed.Name, Got: fmt.Sprintf("%s %v with scales %v", packed.DType, packed.Shape, scales.Shape),
			Want: fmt.Sprintf("4-bit codes [%d, %d] in groups of 32, 64 or 128", rows, cols)}
	}
	m := &found{enc: centred, rows: rows, cols: cols, codes: format}
	if m.weight, err = takeTyped(src, name+".weight_packed", safetensors.I32, []int{rows, words}); err != nil {
		return nil, err
	}
	if m.scales, err = takeTyped(src, name+".weight_scale", safetensors.BF16, []int{rows, groups}); err != nil {
		return nil, err
	}
	return m, checkLater(src, name+".weight_shape", rows, cols)
}

// shapeCheck is a tensor of two integers, which must be rows and columns.
type shapeCheck struct {
	tensor     safetensors.Tensor
	rows, cols int
}

// checkLater takes the tensor of a check. It is read once its file is there.
func checkLater(src *source, name string, rows, cols int) error {
	t, err := src.take(name, 2)
	if err != nil {
		return err
	}
	if t.DType != safetensors.I32 && t.DType != "I64" {
		return &SourceError{Tensor: t.Name, Got: string(t.DType), Want: "I32 or I64"}
	}
	src.shapes = append(src.shapes, shapeCheck{tensor: t, rows: rows, cols: cols})
	return nil
}

// check reads the tensor.
func (c shapeCheck) check() error {
	var got [2]int
	for i := range got {
		if c.tensor.DType == safetensors.I32 {
			got[i] = int(int32(binary.LittleEndian.Uint32(c.tensor.Data[4*i:])))
		} else {
			got[i] = int(binary.LittleEndian.Uint64(c.tensor.Data[8*i:]))
		}
	}
	if got != [2]int{c.rows, c.cols} {
		return &SourceError{Tensor: c.tensor.Name, Got: fmt.Sprint(got), Want: fmt.Sprintf("[%d %d]", c.rows, c.cols)}
	}
	return nil
}

// takeTiles takes a matrix of 8-bit floats: name.weight, and name.weight_scale_inv with one number
// for each tile. In spite of its name, elements are multiplied by that number.
func takeTiles(src *source, name string, rows, cols int) (*found, error) {
	weight, err := src.take(name+".weight", rows, cols)
	if err != nil {
		return nil, err
	}
	if !src.has(name + ".weight_scale_inv") {
		return nil, &SourceError{Tensor: weight.Name, Got: "F8_E4M3 without weight_scale_inv", Want: "a scale for each tile of 128 x 128"}
	}
	scales, err := src.takeFloat(name+".weight_scale_inv", (rows+fp8Tile-1)/fp8Tile, (cols+fp8Tile-1)/fp8Tile)
	return &found{enc: tiled, rows: rows, cols: cols, weight: weight, scales: scales}, err
}

// blocks returns how rows of a matrix are written under name (without ".weight"): as one array, or
// as codes, scales and biases, in the layout l if they can have it.
func (x *numbers) blocks(name string, layout quant.Layout) ([]block, error) {
	m, rows := x.m, x.rowCount()
	f := m.format.In(layout, rows)
	if f.Kind != quant.Affine {
		o, dtype := copyBytes, m.weight.DType
		switch {
		case m.enc == tiled || x.pieces != nil && dtype == safetensors.BF16:
			o, dtype = narrow, safetensors.BF16
		case x.pieces != nil:
			o, dtype = widen, safetensors.F32
		case f.Kind == quant.F32 && dtype != safetensors.F32:
			o, dtype = widen, safetensors.F32
		}
		b, err := newBlock(block{name: name + ".weight", dtype: dtype, shape: []int{rows, m.cols}, op: o, format: f, src: x})
		return []block{b}, err
	}
	ops := [3]op{quantCodes, quantScales, quantBiases}
	if kept := m.format == m.codes; kept && m.enc == affine {
		ops = [3]op{copyBytes, copyBytes, copyBytes}
	} else if kept && m.enc == centred {
		ops = [3]op{copyBytes, copyBytes, minusEight}
	}
	groups := []int{rows, m.cols / f.Group}
	var out []block
	for _, b := range []block{
		{name: name + ".weight", dtype: safetensors.U32, shape: []int{rows, m.cols * f.Bits / 32}, op: ops[0], array: weightArray},
		{name: name + ".scales", dtype: safetensors.BF16, shape: groups, op: ops[1], array: scaleArray},
		{name: name + ".biases", dtype: safetensors.BF16, shape: groups, op: ops[2], array: biasArray},
	} {
		b.format, b.src = f, x
		b, err := newBlock(b)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}
