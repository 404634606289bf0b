package convert

import (
	"slices"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// takeWidened takes a matrix of codes as MLX writes them that no pack has as they are: codes of 3,
// 5 or 6 bits, which lie one after the other across bytes, become codes of 4 or 8; scales and
// biases in float16 become float32; 8-bit floats in groups of 32 get float32 scales for powers of
// two; and NVFP4 gets factors of rows. It returns nil if it is none of these.
func takeWidened(src *source, name string, lead []int, cols int) (*found, error) {
	weight, _ := src.peek(name + ".weight")
	scales, ok := src.peek(name + ".scales")
	biases, biased := src.peek(name + ".biases")
	n := len(lead)
	if !ok || len(weight.Shape) != n+1 || len(scales.Shape) != n+1 || scales.Shape[n] < 1 || cols%scales.Shape[n] != 0 || weight.Shape[n]*32%cols != 0 {
		return nil, nil
	}
	bits, groups := weight.Shape[n]*32/cols, scales.Shape[n]
	group := cols / groups
	var format quant.Format
	var err error
	switch {
	case !biased && scales.DType == safetensors.U8 && bits == 4 && group == 16:
		format = quant.NVFP4
	case !biased && scales.DType == safetensors.U8 && bits == 8 && group == 32:
		format, err = quant.FP8(group)
	case !biased || biases.DType != scales.DType || !isFloat(scales.DType) || !slices.Contains([]int{2, 3, 4, 5, 6, 8}, bits):
		return nil, nil
	default:
		width := 4
		if bits > 4 {
			width = 8
		}
		if format, err = quant.AffineF32(width, group); scales.DType == safetensors.BF16 {
			format, err = quant.AffineFormat(width, group)
		}
	}
	if err != nil {
		return nil, nil // no such groups: the caller says what it found
	}
	if weight, err = src.take(name+".weight", append(slices.Clone(lead), weight.Shape[n])...); err != nil {
		return nil, err
	}
	if scales, err = src.take(name+".scales", append(slices.Clone(lead), groups)...); err != nil {
		return nil, err
	}
	if biased {
		if biases, err = src.take(name+".biases", append(slices.Clone(lead), groups)...); err != nil {
			return nil, err
		}
	}
	rows := product(lead)
	switch {
	case format == quant.NVFP4:
		return (&float4{weight: weight, scales: scales, factor: func() (float32, error) { return 1, nil }}).found(rows, cols), nil
	case !biased:
		return powersOfTwo(weight, scales, format, rows, cols), nil
	}
	r := &recipe{needs: []safetensors.Tensor{weight, scales, biases}, scale: number(scales), bias: number(biases)}
	r.codes = func(dst []byte, at int) error {
		bitsAt(dst, weight.Data, bits, at)
		return nil
	}
	return &found{enc: recoded, rows: rows, cols: cols, weight: weight, codes: format, recipe: r}, nil
}

// powersOfTwo returns a matrix of 8-bit floats whose groups share a power of two: MXFP8.
func powersOfTwo(weight, scales safetensors.Tensor, format quant.Format, rows, cols int) *found {
	r := &recipe{needs: []safetensors.Tensor{weight, scales}, codes: bytesOf(weight)}
	r.scale = func(dst []byte, i int) error {
		one := scales.Data[i : i+1]
		if quant.MXFP4.NoNumber(one) >= 0 {
			return noPower(scales, one[0])
		}
		putF32(dst, []float32{quant.MXFP4.Coding().Scale(one, 0)})
		return nil
	}
	return &found{enc: recoded, rows: rows, cols: cols, weight: weight, codes: format, recipe: r}
}
