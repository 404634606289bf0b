package convert

import (
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// takeFloat8 takes a matrix of 8-bit floats: name.weight, and name.weight_scale_inv or
// name.weight_scale with one number for each tile, for each row, or for all. In spite of the first
// name, elements are multiplied by that number. Packs repeat it for each row and group of inputs.
func takeFloat8(src *source, name string, rows, cols int) (*found, error) {
	weight, err := src.take(name+".weight", rows, cols)
	if err != nil {
		return nil, err
	}
	scaleName := name + ".weight_scale_inv"
	if !src.has(scaleName) {
		scaleName = name + ".weight_scale"
	}
	scales, ok := src.peek(scaleName)
	if !ok {
		return nil, &SourceError{Tensor: weight.Name, Got: "F8_E4M3 without weight_scale_inv or weight_scale", Want: "a scale for each tile of 128 x 128, each row, or all"}
	}
	side := func(n int) int { return (n + fp8Tile - 1) / fp8Tile }
	var height, width int // of what shares a scale
	switch {
	case slices.Equal(scales.Shape, []int{side(rows), side(cols)}):
		height, width = fp8Tile, fp8Tile
	case slices.Equal(scales.Shape, []int{rows, 1}):
		height, width = 1, cols
	case len(scales.Shape) == 0 || slices.Equal(scales.Shape, []int{1}):
		height, width = rows, cols
	default:
		return nil, &SourceError{Tensor: scales.Name, Got: fmt.Sprintf("%s %v", scales.DType, scales.Shape),
			Want: fmt.Sprintf("[%d, %d], [%d, 1] or [1]", side(rows), side(cols), rows)}
	}
	if _, err := src.takeFloat(scaleName, scales.Shape...); err != nil {
		return nil, err
	}
	across := (cols + width - 1) / width
	scaleOf := func(row, col int) (float32, error) { return floatAt(scales, row/height*across+col/width) }
	r := &recipe{needs: []safetensors.Tensor{weight, scales}, codes: bytesOf(weight)}
	m := &found{enc: recoded, rows: rows, cols: cols, weight: weight, recipe: r}
	group := groupIn(cols, 128, 32)
	if group == 0 { // packs have no such groups: every number becomes a float32
		r.value = func(i int) (float32, error) {
			scale, err := scaleOf(i/cols, i%cols)
			return quant.E4M3ToF32(weight.Data[i]) * scale, err
		}
		return m, nil
	}
	if m.codes, err = quant.FP8(group); err != nil {
		return nil, err
	}
	groups := cols / group
	r.scale = func(dst []byte, i int) error {
		v, err := scaleOf(i/groups, i%groups*group)
		putF32(dst, []float32{v})
		return err
	}
	return m, nil
}

// bytesOf returns the codes of a tensor that has one in each byte.
func bytesOf(t safetensors.Tensor) func(dst []byte, at int) error {
	return func(dst []byte, at int) error {
		copy(dst, t.Data[at:])
		return nil
	}
}

// float4 is a matrix of 4-bit floats in groups of 16: NVFP4. Its parts have a name and a type for
// each program that writes them; the bytes are the same.
type float4 struct {
	weight, scales safetensors.Tensor
	factor         func() (float32, error) // of all rows
	needs          []safetensors.Tensor    // beside weight and scales
}

// found returns the matrix. Codes lie in the order of inputs, the first of a byte lowest.
func (f *float4) found(rows, cols int) *found {
	r := &recipe{needs: append([]safetensors.Tensor{f.weight, f.scales}, f.needs...)}
	r.codes = func(dst []byte, at int) error {
		bitsAt(dst, f.weight.Data, 4, at)
		return nil
	}
	r.scale = func(dst []byte, i int) error {
		if dst[0] = f.scales.Data[i]; quant.NVFP4.NoNumber(dst[:1]) >= 0 {
			return &SourceError{Tensor: f.scales.Name, Got: fmt.Sprintf("scale %#x", dst[0]), Want: "0 to 0x7e: numbers without a sign"}
		}
		return nil
	}
	r.factor = func(dst []byte, _ int) error {
		v, err := f.factor()
		putF32(dst, []float32{v})
		return err
	}
	return &found{enc: recoded, rows: rows, cols: cols, weight: f.weight, codes: quant.NVFP4, recipe: r}
}

// float4Names are the tensors of a matrix of NVFP4 with a scale of all: U8 codes of two inputs
// each, F8_E4M3 scales, and an F32 number.
type float4Names struct {
	codes, scales, all string
	divides            bool // the number of all
}

// takeFloat4 takes a matrix of NVFP4.
func takeFloat4(src *source, of float4Names, rows, cols int) (*found, error) {
	if cols%16 != 0 {
		return nil, &SourceError{Tensor: of.codes, Got: fmt.Sprintf("%d inputs", cols), Want: "groups of 16"}
	}
	f := &float4{}
	var err error
	if f.weight, err = takeTyped(src, of.codes, safetensors.U8, []int{rows, cols / 2}); err != nil {
		return nil, err
	}
	if f.scales, err = takeTyped(src, of.scales, safetensors.F8E4M3, []int{rows, cols / 16}); err != nil {
		return nil, err
	}
	one, _ := src.peek(of.all)
	if one, err = takeTyped(src, of.all, safetensors.F32, one.Shape); err != nil {
		return nil, err
	}
	if one.Elements() != 1 {
		return nil, &SourceError{Tensor: one.Name, Got: fmt.Sprint(one.Shape), Want: "one number"}
	}
	f.needs = []safetensors.Tensor{one}
	f.factor = func() (float32, error) {
		v, err := floatAt(one, 0)
		switch {
		case err != nil:
			return 0, err
		case !of.divides:
			return v, nil
		case 1/v-1/v != 0:
			return 0, &SourceError{Tensor: one.Name, Got: fmt.Sprint(v), Want: "a number to divide by"}
		}
		return 1 / v, nil
	}
	return f.found(rows, cols), nil
}
