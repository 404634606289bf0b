package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Unpack widens row row of a [rows, cols] matrix to dst [cols]. weight, scales and biases are the
// whole matrix as stored; parts that the format has not are not looked at. Each step is rounded to
// float32. A product with a scale of 8 bits or fewer is exact: its significant bits are at most 16.
// The caller has checked the format (Validate) and the lengths (PartBytes).
func (f Format) Unpack(dst []float32, cols int, weight, scales, biases []byte, row int) {
	dst = dst[:cols]
	d := &codings[f.Coding()]
	if d.widen != nil {
		d.widen(dst, weight[f.WeightBytes(row, cols):][:f.WeightBytes(1, cols)])
		return
	}
	if f.Layout == Panels {
		f.unpackPanel(dst, weight, scales, biases, row)
		return
	}
	w := weight[f.WeightBytes(row, cols):][:f.WeightBytes(1, cols)]
	group, first := f.Group(), row*(cols/f.Group())
	perByte, mask := 8/d.bits, byte(1<<d.bits-1)
	for g := range cols / group {
		x := f.numbers(scales, biases, first+g)
		for i := g * group; i < (g+1)*group; i++ {
			dst[i] = x.of(int(w[i/perByte] >> (i % perByte * d.bits) & mask))
		}
	}
	f.scaleRow(dst, biases, row)
}

// scaleRow multiplies a row by its factor, if it has one.
func (f Format) scaleRow(dst []float32, factors []byte, row int) {
	if !f.Coding().Factor() {
		return
	}
	factor := f.Coding().RowFactor(factors, row)
	for i := range dst {
		dst[i] *= factor
	}
}

// numbers are what the codes of a group have in common.
type numbers struct {
	coding      Coding
	scale, bias float32
}

// numbers returns those of group i of lists of scales and biases.
func (f Format) numbers(scales, biases []byte, i int) numbers {
	c := f.Coding()
	return numbers{c, c.Scale(scales, i), c.Bias(biases, i)}
}

// of returns what a code stands for.
func (n *numbers) of(code int) float32 {
	return float32(n.coding.Value(code)*n.scale) + n.bias
}

// ValueError reports a number that cannot be quantised.
type ValueError struct {
	Index int // of the element in the input
	Value float32
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("quant: element %d is %v: only finite numbers with a finite range can be quantised", e.Index, e.Value)
}

// Quantize stores whole groups of numbers in an affine format. src is [n], one matrix row after the
// other, n being a multiple of the group. weight is n·Bits/8 bytes, scales and biases are n/Group
// bf16 numbers. Any of the three may be nil and is then not written.
//
// A group has least number lo, greatest number hi, and m = 2^Bits-1. The end e of larger magnitude
// (hi if equal) becomes code 0, and s = ±(hi-lo)/m leads from it to the other end. Then s changes
// by the least amount that makes 0 a whole number of steps away from e: q0 = round(e/s), s = e/q0,
// bias = e. If q0 is 0, the bias is 0. So scales are negative if hi has the larger magnitude, and
// the other end may be clipped, by up to two steps. Both are rounded to bf16, and each number gets
// the code with the nearest value: round((x-bias)/s), ties to even, clipped to 0..m. This is how
// MLX makes 4-bit checkpoints, and the order of the float32 operations here gives exactly its
// codes.
//
// The error is a *ValueError for a number that is not finite. The outputs are then undefined.
func (f Format) Quantize(weight, scales, biases []byte, src []float32) error {
	if !f.Affine() || len(src)%f.Group() != 0 {
		panic(fmt.Sprintf("quant: Quantize of %d numbers to %v", len(src), f))
	}
	group, bits := f.Group(), f.Bits()
	for g := 0; g < len(src)/group; g++ {
		x := src[g*group:][:group]
		scale, bias, err := fit(x, bits)
		if err != nil {
			err.Index += g * group
			return err
		}
		s, b := F32ToBF16(scale), F32ToBF16(bias)
		if scales != nil {
			binary.LittleEndian.PutUint16(scales[2*g:], s)
		}
		if biases != nil {
			binary.LittleEndian.PutUint16(biases[2*g:], b)
		}
		if weight != nil {
			bytes := group * bits / 8
			encode(weight[g*bytes:][:bytes], x, bits, BF16ToF32(s), BF16ToF32(b))
		}
	}
	return nil
}

const (
	leastScale = 1e-7 // keeps the division of a constant group defined
	// a little below the greatest number that rounds to a finite bf16
	maxBF16 = math.MaxFloat32 * (1 - 1.0/256)
)

// fit returns the scale and the bias of one group of codes of bits.
func fit(x []float32, bits int) (scale, bias float32, err *ValueError) {
	lo, hi := x[0], x[0]
	for i, v := range x {
		if d := v - v; d != 0 { // infinite or NaN
			return 0, 0, &ValueError{Index: i, Value: v}
		}
		lo, hi = min(lo, v), max(hi, v)
	}
	width := hi - lo
	// Neither the range nor the number that becomes the bias may overflow float32 or bf16.
	if width > math.MaxFloat32 || max(-lo, hi) > maxBF16 {
		return 0, 0, &ValueError{Value: x[0]}
	}
	scale = max(width/float32(int(1)<<bits-1), leastScale)
	edge := hi
	if -lo > hi { // |lo| > |hi|, since hi >= lo
		edge = lo
	} else {
		scale = -scale
	}
	if steps := float32(math.RoundToEven(float64(edge / scale))); steps != 0 {
		return edge / steps, edge, nil
	}
	return scale, 0, nil
}

// encode packs the codes of one group.
func encode(dst []byte, x []float32, bits int, scale, bias float32) {
	top := float32(int(1)<<bits - 1)
	perByte := 8 / bits
	for i := range dst {
		var b byte
		for j := range perByte {
			q := float32(math.RoundToEven(float64((x[i*perByte+j] - bias) / scale)))
			b |= byte(min(max(q, 0), top)) << (j * bits)
		}
		dst[i] = b
	}
}
