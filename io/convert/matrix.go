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
	m, err := takeEncoded(src, name, stack, rows, cols, w)
	if err != nil {
		return nil, err
	}
	m.choose(w)
	return m, m.checkExact()
}

// takeEncoded takes a matrix in any encoding.
func takeEncoded(src *source, name string, stack []int, rows, cols int, w wish) (*found, error) {
	full := name + ".weight"
	shape := append(slices.Clone(stack), rows, cols)
	if len(stack) == 0 {
		if src.has(name + ".qweight") {
			return takeInputsFirst(src, name, rows, cols, w)
		}
		if t, ok := src.peek(name + ".weight_packed"); ok {
			return takeCompressed(src, t, name, rows, cols, w)
		}
	}
	t, ok := src.peek(full)
	if !ok {
		_, err := src.take(full, shape...)
		return nil, err
	}
	switch {
	case t.DType == safetensors.U32:
		return takeCodes(src, name, stack, rows, cols)
	case t.DType == safetensors.F8E4M3 && len(stack) == 0:
		return takeFloat8(src, name, rows, cols)
	case t.DType == safetensors.U8 && len(stack) == 0 && src.has(full+"_scale_2"):
		return takeFloat4(src, float4Names{codes: full, scales: full + "_scale", all: full + "_scale_2"}, rows, cols)
	}
	if b := quant.BlockNamed(string(t.DType)); b != nil && (b.Len > 1 || src.gguf && t.DType == safetensors.F16) {
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

// choose sets the target's format. Floats of 8 bits count as numbers that are not quantised yet.
func (m *found) choose(w wish) {
	again := w.again || m.codes.Codes() && !m.codes.Rounds()
	switch {
	case m.codes.Codes() && !(again && w.bits != 0 && w.bits < m.codes.Bits()):
		m.format = m.codes
	case m.codes.Affine():
		m.format = quant.Affine(w.bits, m.codes.Group())
	case w.bits != 0 && m.cols%groupSize == 0:
		m.format = quant.Affine(w.bits, groupSize)
	case m.codes.Codes():
		m.format = m.codes
	case m.weight.DType == safetensors.BF16:
		m.format = quant.BF16
	case m.enc == packed:
		m.format = quant.InBlock(m.block)
	default:
		m.format = quant.F32
	}
}

// checkExact refuses what would be rounded though nobody asked for that.
func (m *found) checkExact() error {
	if m.enc != recoded || m.recipe.rounds == "" || m.format.Codes() {
		return nil
	}
	return &SourceError{Tensor: m.weight.Name, Got: m.recipe.rounds + ": taken only by convert with --bits 4 or 8, which rounds"}
}

// takeCodes takes a matrix of codes. The format follows from the tensors' types and shapes, whose
// first axes are those of the stack.
func takeCodes(src *source, name string, stack []int, rows, cols int) (*found, error) {
	lead := append(slices.Clone(stack), rows)
	format, err := quant.FromArrays(rows, cols, func(p quant.Part) (string, []int, bool) {
		t, ok := src.peek(name + "." + p.String())
		if !ok {
			return "", nil, false
		}
		if !slices.Equal(t.Shape[:min(len(lead), len(t.Shape))], lead) {
			return string(t.DType), t.Shape, true // as it is: no format has it
		}
		return string(t.DType), append([]int{rows}, t.Shape[len(lead):]...), true
	})
	if err != nil {
		if m, e := takeWidened(src, name, lead, cols); m != nil || e != nil {
			return m, e
		}
		return nil, &SourceError{Tensor: name + ".weight", Got: err.Error(), Want: fmt.Sprintf("codes of %v rows of %d columns", lead, cols)}
	}
	m := &found{enc: coded, rows: product(lead), cols: cols, codes: format}
	parts := [quant.NumParts]*safetensors.Tensor{&m.weight, &m.scales, &m.biases}
	for _, a := range format.Arrays(rows, cols) {
		if *parts[a.Part], err = src.take(name+"."+a.Part.String(), append(slices.Clone(lead), a.Shape[1:]...)...); err != nil {
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

// takeCompressed takes a matrix of compressed-tensors whose codes are packed: 4-bit floats in
// bytes, NVFP4 or MXFP4 by their scales, or whole numbers in words.
func takeCompressed(src *source, packed safetensors.Tensor, name string, rows, cols int, w wish) (*found, error) {
	scales, _ := src.peek(name + ".weight_scale")
	switch {
	case packed.DType == safetensors.U8 && scales.DType == safetensors.F8E4M3:
		of := float4Names{codes: name + ".weight_packed", scales: name + ".weight_scale", all: name + ".weight_global_scale", divides: true}
		return takeFloat4(src, of, rows, cols)
	case packed.DType == safetensors.U8:
		return takeBytes(src, name+".weight_packed", name+".weight_scale", rows, cols)
	case scales.DType == safetensors.BF16 && !src.has(name+".weight_zero_point") && !src.has(name+".weight_g_idx"):
		if m, err := takeCentred(src, name, rows, cols); m != nil || err != nil {
			return m, err
		}
	}
	return takePacked(src, name, rows, cols, w)
}

// takeBytes takes a matrix of MXFP4: U8 codes of two inputs each, the first lowest, and U8 scales.
func takeBytes(src *source, codes, scales string, rows, cols int) (*found, error) {
	f := quant.MXFP4
	if err := f.Validate(cols); err != nil {
		return nil, &SourceError{Tensor: codes, Got: err.Error()}
	}
	m := &found{enc: coded, rows: rows, cols: cols, codes: f}
	var err error
	if m.weight, err = takeTyped(src, codes, safetensors.U8, []int{rows, cols / 2}); err != nil {
		return nil, err
	}
	m.scales, err = takeTyped(src, scales, safetensors.U8, []int{rows, cols / f.Group()})
	return m, err
}

// takeCentred takes a matrix of compressed-tensors with 4-bit codes, lowest first, in bf16 groups
// that packs have: takePacked for what is all but a copy. A code q stands for (q-8)·scale. It
// returns nil for other groups and bits.
func takeCentred(src *source, name string, rows, cols int) (*found, error) {
	packed, _ := src.peek(name + ".weight_packed")
	scales, _ := src.peek(name + ".weight_scale")
	words, groups := lastAxis(packed.Shape), lastAxis(scales.Shape)
	format, err := quant.AffineFormat(4, cols/max(groups, 1))
	if err != nil || words*8 != cols || format.Validate(cols) != nil {
		return nil, nil
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

// check is something that must hold of numbers in the checkpoint, which are read once their file is
// there.
type check struct {
	tensor safetensors.Tensor
	run    func() error
}

// checkLater takes a tensor of two integers, which must be rows and columns.
func checkLater(src *source, name string, rows, cols int) error {
	t, err := src.take(name, 2)
	if err != nil {
		return err
	}
	if t.DType != safetensors.I32 && t.DType != "I64" {
		return &SourceError{Tensor: t.Name, Got: string(t.DType), Want: "I32 or I64"}
	}
	src.checks = append(src.checks, check{t, shapeCheck{tensor: t, rows: rows, cols: cols}.check})
	return nil
}

// shapeCheck is a tensor of two integers, which must be rows and columns.
type shapeCheck struct {
	tensor     safetensors.Tensor
	rows, cols int
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

// blocks returns how rows of a matrix are written under name (without ".weight"): array by array,
// in the layout l if they can have it.
func (x *numbers) blocks(name string, layout quant.Layout) ([]block, error) {
	m, rows := x.m, x.rowCount()
	f := m.format.In(layout, rows)
	var out []block
	for _, a := range f.Arrays(rows, m.cols) {
		out = append(out, block{name: name + "." + a.Part.String(), dtype: safetensors.DType(a.DType), shape: a.Shape, bytes: int64(a.Bytes),
			op: x.opOf(a.Part), array: a.Part, format: f, src: x})
	}
	return out, nil
}

// opOf returns how a part of the target is made.
func (x *numbers) opOf(p quant.Part) op {
	m := x.m
	moved := x.pieces != nil || m.enc == inputsFirst // elements of a row
	switch kept := m.format == m.codes; {
	case m.format.Codes() && !kept:
		return quantise
	case m.format.Codes() && m.enc == recoded:
		return recode
	case m.format.Codes() && m.enc == centred && p == quant.Biases:
		return minusEight
	case m.format == quant.BF16 && moved:
		return narrow
	case m.format == quant.F32 && (moved || m.enc == recoded || m.weight.DType != safetensors.F32):
		return widen
	}
	return copyBytes
}
