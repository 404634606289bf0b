package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Unpack widens row row of a [rows, cols] matrix to dst, which is [cols]. weight, scales and biases
// are the whole matrix, as stored; scales and biases are not looked at unless the format is Affine.
// The values are exact products and one rounded sum: a code times a bf16 scale has at most 16
// significant bits. The caller has checked the format (Validate) and the lengths (WeightBytes,
// ScaleBytes).
func (f Format) Unpack(dst []float32, cols int, weight, scales, biases []byte, row int) {
	dst = dst[:cols]
	if f.Kind == Affine && f.Layout == Panels {
		f.unpackPanel(dst, weight, scales, biases, row)
		return
	}
	w := weight[f.WeightBytes(row, cols):][:f.WeightBytes(1, cols)]
	switch f.Kind {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(w[4*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = BF16ToF32(binary.LittleEndian.Uint16(w[2*i:]))
		}
	default:
		first := f.ScaleBytes(row, cols)
		s := scales[first:][:f.ScaleBytes(1, cols)]
		b := biases[first:][:f.ScaleBytes(1, cols)]
		perByte := 8 / f.Bits
		mask := byte(1<<f.Bits - 1)
		for g := 0; g < cols; g += f.Group {
			at := g / f.Group * 2
			scale := BF16ToF32(binary.LittleEndian.Uint16(s[at:]))
			bias := BF16ToF32(binary.LittleEndian.Uint16(b[at:]))
			for i := g; i < g+f.Group; i++ {
				code := w[i/perByte] >> (i % perByte * f.Bits) & mask
				dst[i] = float32(float32(code)*scale) + bias
			}
		}
	}
}

// ValueError reports a number that has no affine code.
type ValueError struct {
	Index int // of the element in what was to be quantised
	Value float32
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("quant: element %d is %v: only finite numbers whose range is finite can be quantised", e.Index, e.Value)
}

// Quantize stores whole groups of numbers in an affine format: src is [n], n a multiple of f.Group,
// one matrix row after the other; weight is n·Bits/8 bytes, scales and biases are n/Group bf16
// numbers. Any of the three may be nil and is then not written.
//
// Per group with least number lo and greatest hi, and 2^Bits-1 = m: the end e of larger magnitude
// (hi if equal) becomes code 0, s = ±(hi-lo)/m leads from it to the other end, and s is then
// changed by the least that makes 0 a whole number of steps away: q0 = round(e/s), s = e/q0, bias =
// e. Where q0 is 0 the bias is 0. So scales are negative where the greatest number is the one of
// larger magnitude, and the other end may be cut, by up to two steps. Both are rounded to bf16, and
// each number gets the code whose value is nearest: round((x-bias)/s), ties to even, cut to 0..m.
// MLX 4-bit checkpoints are made in this way, and the order of the float32 operations here gives
// their very codes.
//
// The error is a *ValueError for a number that is not finite; the outputs are undefined then.
func (f Format) Quantize(weight, scales, biases []byte, src []float32) error {
	if f.Kind != Affine || len(src)%f.Group != 0 {
		panic(fmt.Sprintf("quant: Quantize of %d numbers to %v", len(src), f))
	}
	for g := 0; g < len(src)/f.Group; g++ {
		x := src[g*f.Group:][:f.Group]
		scale, bias, err := f.fit(x)
		if err != nil {
			err.Index += g * f.Group
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
			bytes := f.Group * f.Bits / 8
			f.encode(weight[g*bytes:][:bytes], x, BF16ToF32(s), BF16ToF32(b))
		}
	}
	return nil
}

const (
	leastScale = 1e-7 // keeps the division of a constant group defined
	// a little below the greatest number that rounds to a finite bf16
	maxBF16 = math.MaxFloat32 * (1 - 1.0/256)
)

// fit returns scale and bias of one group.
func (f Format) fit(x []float32) (scale, bias float32, err *ValueError) {
	lo, hi := x[0], x[0]
	for i, v := range x {
		if d := v - v; d != 0 { // infinite or NaN
			return 0, 0, &ValueError{Index: i, Value: v}
		}
		lo, hi = min(lo, v), max(hi, v)
	}
	width := hi - lo
	// Neither the range nor the number that becomes the bias may leave what float32 and bf16 hold.
	if width > math.MaxFloat32 || max(-lo, hi) > maxBF16 {
		return 0, 0, &ValueError{Value: x[0]}
	}
	scale = max(width/float32(int(1)<<f.Bits-1), leastScale)
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
func (f Format) encode(dst []byte, x []float32, scale, bias float32) {
	top := float32(int(1)<<f.Bits - 1)
	perByte := 8 / f.Bits
	for i := range dst {
		var b byte
		for j := range perByte {
			q := float32(math.RoundToEven(float64((x[i*perByte+j] - bias) / scale)))
			b |= byte(min(max(q, 0), top)) << (j * f.Bits)
		}
		dst[i] = b
	}
}
