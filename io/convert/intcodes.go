package convert

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// zeroed is codes of whole numbers that stand for (code - zero)·scale.
type zeroed struct {
	weight, scales safetensors.Tensor
	needs          []safetensors.Tensor // beside them
	rows, cols     int
	bits           int
	groups         int // that a row has in the source
	// byRow means that scales are [rows, groups], else [groups, rows].
	byRow bool
	code  func(row, col int) byte
	zero  func(row, group int) (int, error)
	// order is which group each input belongs to, where the checkpoint says so; nil: in turn. With
	// anyOrder that may be another than their own.
	order    *safetensors.Tensor
	anyOrder bool
	// centre means that all zero points are half of the codes, so that biases of bf16 are exact.
	centre bool
}

// scale returns the scale of a group of the source.
func (z *zeroed) scale(row, group int) (float32, error) {
	if z.byRow {
		return floatAt(z.scales, row*z.groups+group)
	}
	return floatAt(z.scales, group*z.rows+row)
}

// found returns the matrix, for which w decides what becomes of inputs that are out of order.
func (z *zeroed) found(src *source, w wish) (*found, error) {
	name, size := z.weight.Name, z.cols/z.groups
	r := &recipe{needs: append([]safetensors.Tensor{z.weight, z.scales}, z.needs...), scattered: !z.byRow}
	m := &found{enc: recoded, rows: z.rows, cols: z.cols, weight: z.weight, recipe: r}
	group := groupIn(size, 128, 64, 32)
	switch {
	case z.anyOrder && w.bits != 0: // whatever their order is
		r.rounds = "inputs in an order of their own"
	case group == 0:
		r.rounds = fmt.Sprintf("groups of %d inputs, of which packs have none", size)
	case z.order != nil:
		src.checks = append(src.checks, check{tensor: *z.order, run: z.inOrder})
	}
	if r.rounds != "" {
		r.value = z.value
		return m, nil
	}
	bits := 4
	if z.bits > 4 {
		bits = 8
	}
	var err error
	narrow := z.centre && z.bits == bits && z.scales.DType == safetensors.BF16
	if m.codes, err = quant.AffineF32(bits, group); narrow {
		m.codes, err = quant.AffineFormat(bits, group)
	}
	if err != nil {
		return nil, &SourceError{Tensor: name, Got: err.Error()}
	}
	r.codes = func(dst []byte, at int) error {
		for i := range dst {
			dst[i] = z.code((at+i)/z.cols, (at+i)%z.cols)
		}
		return nil
	}
	per := z.cols / group // groups of the pack in a row
	put := func(dst []byte, v float32) { putF32(dst, []float32{v}) }
	if narrow {
		put = func(dst []byte, v float32) { binary.LittleEndian.PutUint16(dst, quant.F32ToBF16(v)) }
	}
	r.scale = func(dst []byte, i int) error {
		v, err := z.scale(i/per, i%per*group/size)
		put(dst, v)
		return err
	}
	r.bias = func(dst []byte, i int) error {
		v, err := z.scale(i/per, i%per*group/size)
		if err != nil {
			return err
		}
		zero, err := z.zero(i/per, i%per*group/size)
		put(dst, -float32(zero)*v)
		return err
	}
	return m, nil
}

// value returns what an element stands for, whatever order inputs are in.
func (z *zeroed) value(at int) (float32, error) {
	row, col := at/z.cols, at%z.cols
	group := col / (z.cols / z.groups)
	if z.order != nil {
		group = int(int32(binary.LittleEndian.Uint32(z.order.Data[4*col:])))
		if group < 0 || group >= z.groups {
			return 0, &SourceError{Tensor: z.order.Name, Got: fmt.Sprintf("group %d of input %d", group, col), Want: fmt.Sprintf("0 to %d", z.groups-1)}
		}
	}
	scale, err := z.scale(row, group)
	if err != nil {
		return 0, err
	}
	zero, err := z.zero(row, group)
	return float32(int(z.code(row, col))-zero) * scale, err
}

// inOrder reports inputs whose groups are not in turn: then no group of a pack has one scale.
func (z *zeroed) inOrder() error {
	size := z.cols / z.groups
	for col := range z.cols {
		if got := int(int32(binary.LittleEndian.Uint32(z.order.Data[4*col:]))); got != col/size {
			return &SourceError{Tensor: z.order.Name, Got: fmt.Sprintf("input %d in group %d, not %d", col, got, col/size),
				Want: "inputs in order, unless convert is given --bits 4 or 8, which rounds them"}
		}
	}
	return nil
}

// takeOrder takes the list of the groups that inputs belong to, if there is one.
func (z *zeroed) takeOrder(src *source, name string, anyOrder bool) error {
	if !src.has(name) {
		return nil
	}
	z.anyOrder = anyOrder
	t, err := takeTyped(src, name, safetensors.I32, []int{z.cols})
	z.order, z.needs = &t, append(z.needs, t)
	return err
}

// wordCode returns the code of bits at place i of a word.
func wordCode(t safetensors.Tensor, word, i, bits int) byte {
	return byte(binary.LittleEndian.Uint32(t.Data[4*word:])>>(i*bits)) & byte(1<<bits-1)
}

// awqPlaces is where AWQ has each of eight neighbouring outputs in a word.
var awqPlaces = [8]int{0, 4, 1, 5, 2, 6, 3, 7}

// takeInputsFirst takes a matrix of AWQ or GPTQ: name.qweight, I32 words of codes; name.qzeros, the
// zero points in such words; and name.scales [groups, rows]. AWQ has in a word eight outputs of an
// input, GPTQ neighbouring inputs of an output.
func takeInputsFirst(src *source, name string, rows, cols int, w wish) (*found, error) {
	qweight, _ := src.peek(name + ".qweight")
	scales, _ := src.peek(name + ".scales")
	z := &zeroed{rows: rows, cols: cols, groups: 1}
	if len(scales.Shape) == 2 && scales.Shape[0] > 0 {
		z.groups = scales.Shape[0]
	}
	bad := &SourceError{Tensor: qweight.Name, Got: fmt.Sprintf("%s %v with scales %s %v", qweight.DType, qweight.Shape, scales.DType, scales.Shape),
		Want: fmt.Sprintf("codes of 2, 4 or 8 bits for [%d, %d]", rows, cols)}
	if cols%z.groups != 0 || rows%32 != 0 || cols%32 != 0 {
		return nil, bad
	}
	awq := slices.Equal(qweight.Shape, []int{cols, rows / 8})
	if z.bits = 4; !awq {
		if len(qweight.Shape) != 2 || qweight.Shape[1] != rows || !slices.Contains([]int{2, 4, 8}, qweight.Shape[0]*32/cols) || qweight.Shape[0]*32%cols != 0 {
			return nil, bad
		}
		z.bits = qweight.Shape[0] * 32 / cols
	}
	var err error
	if z.weight, err = takeTyped(src, name+".qweight", safetensors.I32, qweight.Shape); err != nil {
		return nil, err
	}
	if z.scales, err = src.takeFloat(name+".scales", z.groups, rows); err != nil {
		return nil, err
	}
	per := 32 / z.bits
	zeros, err := takeTyped(src, name+".qzeros", safetensors.I32, []int{z.groups, rows / per})
	if err != nil {
		return nil, err
	}
	z.needs = []safetensors.Tensor{zeros}
	if awq {
		z.code = func(row, col int) byte { return wordCode(z.weight, col*(rows/8)+row/8, awqPlaces[row%8], 4) }
		z.zero = func(row, group int) (int, error) {
			return int(wordCode(zeros, group*(rows/8)+row/8, awqPlaces[row%8], 4)), nil
		}
		return z.found(src, w)
	}
	z.code = func(row, col int) byte { return wordCode(z.weight, col/per*rows+row, col%per, z.bits) }
	less := src.lessOne
	z.zero = func(row, group int) (int, error) {
		zero := int(wordCode(zeros, group*(rows/per)+row/per, row%per, z.bits))
		if less {
			if zero == 1<<z.bits-1 {
				return 0, &SourceError{Tensor: zeros.Name, Got: fmt.Sprintf("%d, which stands for 0 or for %d in checkpoints of the format gptq", zero, zero+1),
					Want: fmt.Sprintf("zero points below %d", zero)}
			}
			zero++
		}
		return zero, nil
	}
	if err := z.takeOrder(src, name+".g_idx", src.anyOrder); err != nil {
		return nil, err
	}
	return z.found(src, w)
}

// takePacked takes a matrix of compressed-tensors whose codes are whole numbers:
// name.weight_packed, I32 words of codes of 4 or 8 bits; name.weight_scale [rows, groups];
// name.weight_shape, which repeats rows and columns; and perhaps name.weight_zero_point, words of
// neighbouring rows' zero points. Without these the middle code stands for 0.
func takePacked(src *source, name string, rows, cols int, w wish) (*found, error) {
	packed, _ := src.peek(name + ".weight_packed")
	scales, ok := src.peek(name + ".weight_scale")
	z := &zeroed{rows: rows, cols: cols, groups: lastAxis(scales.Shape), byRow: true, bits: lastAxis(packed.Shape) * 32 / cols}
	if !ok || z.groups < 1 || cols%z.groups != 0 || z.bits != 4 && z.bits != 8 || lastAxis(packed.Shape)*32%cols != 0 {
		return nil, &SourceError{Tensor: packed.Name, Got: fmt.Sprintf("%s %v with scales %v", packed.DType, packed.Shape, scales.Shape),
			Want: fmt.Sprintf("codes [%d, %d] of 4 or 8 bits in groups", rows, cols)}
	}
	per := 32 / z.bits
	var err error
	if z.weight, err = takeTyped(src, name+".weight_packed", safetensors.I32, []int{rows, cols / per}); err != nil {
		return nil, err
	}
	if z.scales, err = src.takeFloat(name+".weight_scale", rows, z.groups); err != nil {
		return nil, err
	}
	z.code = func(row, col int) byte { return wordCode(z.weight, (row*cols+col)/per, col%per, z.bits) }
	z.centre = true
	z.zero = func(int, int) (int, error) { return 1 << (z.bits - 1), nil }
	if src.has(name + ".weight_zero_point") {
		zeros, err := takeTyped(src, name+".weight_zero_point", safetensors.I32, []int{(rows + per - 1) / per, z.groups})
		if err != nil {
			return nil, err
		}
		z.centre, z.needs = false, []safetensors.Tensor{zeros}
		z.zero = func(row, group int) (int, error) {
			return int(wordCode(zeros, row/per*z.groups+group, row%per, z.bits)), nil
		}
	}
	if err := z.takeOrder(src, name+".weight_g_idx", true); err != nil {
		return nil, err
	}
	if err := checkLater(src, name+".weight_shape", rows, cols); err != nil {
		return nil, err
	}
	return z.found(src, w)
}
