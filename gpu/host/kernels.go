package host

import (
	"encoding/binary"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// kernels are the inner loops of a matrix product in one variant. All functions of one variant add in one order:
// a row of X gets the same bits from one, two and last.
type kernels struct {
	name string
	// one returns row·x for a packed row. x is [cols], sums [cols/32] (see rowList), scales and
	// biases are nil unless the format is affine.
	one func(row, scales, biases []byte, f quant.Format, x, sums []float32) float32
	// two returns the products of a row, unpacked to q [cols], with two rows of X.
	two func(q []float32, scales, biases []byte, block int, x0, sums0, x1, sums1 []float32) (float32, float32)
	// last is two for one row of X.
	last func(q []float32, scales, biases []byte, block int, x, sums []float32) float32
	// unpack writes a row's codes, or its elements if it has none, to dst [cols].
	unpack func(dst []float32, row []byte, f quant.Format)
}

var portable = kernels{name: "portable", one: portableOne, two: portableTwo, last: portableLast, unpack: unpack}

// Variants returns the names of the variants that this processor runs, the best first; "portable" is always there.
func Variants() []string {
	var names []string
	for _, k := range available() {
		names = append(names, k.name)
	}
	return names
}

// variant returns the kernels of a name, the best for "", nil if this processor does not run them.
func variant(name string) *kernels {
	for _, k := range available() {
		if name == "" || name == k.name {
			return k
		}
	}
	return nil
}

// groupSum returns Σ x over group g of size n, from the sums of blocks of 32.
func groupSum(sums []float32, g, n int) float32 {
	switch n {
	case 32:
		return sums[g]
	case 64:
		return sums[2*g] + sums[2*g+1]
	default:
		return (sums[4*g] + sums[4*g+1]) + (sums[4*g+2] + sums[4*g+3])
	}
}

// scaled returns s·dot + b·Σx of group g.
func scaled(dot float32, scales, biases []byte, g, n int, sums []float32) float32 {
	return float32(bf16(scales, g)*dot) + float32(bf16(biases, g)*groupSum(sums, g, n))
}

func portableOne(row, scales, biases []byte, f quant.Format, x, sums []float32) float32 {
	switch f.Kind {
	case quant.F32:
		return portableLast(gpu.Floats(row, len(x)), nil, nil, blockInputs, x, nil)
	case quant.BF16:
		return oneBF16(row, x)
	}
	n := f.Group
	bytes := n * f.Bits / 8
	var y float32
	for g := 0; len(row) >= bytes && len(x) >= n; g++ {
		var d float32
		switch f.Bits {
		case 4:
			d = dot4(row[:bytes], x[:n])
		case 8:
			d = dot8(row[:bytes], x[:n])
		default:
			d = dot2(row[:bytes], x[:n])
		}
		y += scaled(d, scales, biases, g, n, sums)
		row, x = row[bytes:], x[n:]
	}
	return y
}

// dot4 is dot with 4-bit codes; len(x) is 2·len(row), a multiple of 8.
func dot4(row []byte, x []float32) float32 {
	var a, b, c, d float32
	for len(row) >= 4 && len(x) >= 8 {
		w := binary.LittleEndian.Uint32(row)
		q, r, s, t := &codes4[byte(w)], &codes4[byte(w>>8)], &codes4[byte(w>>16)], &codes4[byte(w>>24)]
		a += float32(q[0] * x[0])
		b += float32(q[1] * x[1])
		c += float32(r[0] * x[2])
		d += float32(r[1] * x[3])
		a += float32(s[0] * x[4])
		b += float32(s[1] * x[5])
		c += float32(t[0] * x[6])
		d += float32(t[1] * x[7])
		row, x = row[4:], x[8:]
	}
	return (a + c) + (b + d)
}

// dot8 is dot with 8-bit codes; len(x) is len(row), a multiple of 4.
func dot8(row []byte, x []float32) float32 {
	var a, b, c, d float32
	for len(row) >= 4 && len(x) >= 4 {
		w := binary.LittleEndian.Uint32(row)
		a += float32(codes8[byte(w)] * x[0])
		b += float32(codes8[byte(w>>8)] * x[1])
		c += float32(codes8[byte(w>>16)] * x[2])
		d += float32(codes8[byte(w>>24)] * x[3])
		row, x = row[4:], x[4:]
	}
	return (a + c) + (b + d)
}

// dot2 is dot with 2-bit codes; len(x) is 4·len(row), a multiple of 8.
func dot2(row []byte, x []float32) float32 {
	var a, b, c, d float32
	for len(row) >= 2 && len(x) >= 8 {
		q, r := &codes2[row[0]], &codes2[row[1]]
		a += float32(q[0] * x[0])
		b += float32(q[1] * x[1])
		c += float32(q[2] * x[2])
		d += float32(q[3] * x[3])
		a += float32(r[0] * x[4])
		b += float32(r[1] * x[5])
		c += float32(r[2] * x[6])
		d += float32(r[3] * x[7])
		row, x = row[2:], x[8:]
	}
	return (a + c) + (b + d)
}

// oneBF16 is row·x for a row of bf16 [cols], in blocks of blockInputs.
func oneBF16(row []byte, x []float32) float32 {
	var y float32
	for len(x) > 0 {
		n := min(len(x), blockInputs)
		y += dotBF16(row[:2*n], x[:n])
		row, x = row[2*n:], x[n:]
	}
	return y
}

func dotBF16(row []byte, x []float32) float32 {
	var a, b, c, d float32
	for len(row) >= 8 && len(x) >= 4 {
		w := binary.LittleEndian.Uint64(row)
		a += float32(math.Float32frombits(uint32(w)<<16) * x[0])
		b += float32(math.Float32frombits(uint32(w)&^0xffff) * x[1])
		c += float32(math.Float32frombits(uint32(w>>32)<<16) * x[2])
		d += float32(math.Float32frombits(uint32(w>>32)&^0xffff) * x[3])
		row, x = row[8:], x[4:]
	}
	lanes := [4]float32{a, b, c, d}
	for i, v := range x {
		lanes[i] += float32(bf16(row, i) * v)
	}
	return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
}

func portableLast(q []float32, scales, biases []byte, block int, x, sums []float32) float32 {
	var y float32
	for g := 0; len(q) > 0; g++ {
		n := min(len(q), block)
		d := dot(q[:n], x)
		if scales != nil {
			d = scaled(d, scales, biases, g, n, sums)
		}
		y += d
		q, x = q[n:], x[n:]
	}
	return y
}

func portableTwo(q []float32, scales, biases []byte, block int, x0, sums0, x1, sums1 []float32) (y0, y1 float32) {
	for g := 0; len(q) > 0; g++ {
		n := min(len(q), block)
		d0, d1 := dotTwo(q[:n], x0, x1)
		if scales != nil {
			d0 = scaled(d0, scales, biases, g, n, sums0)
			d1 = scaled(d1, scales, biases, g, n, sums1)
		}
		y0 += d0
		y1 += d1
		q, x0, x1 = q[n:], x0[n:], x1[n:]
	}
	return y0, y1
}

// dotTwo is dot for two rows at once. Arrays instead of slices that shrink: it is half as quick again.
func dotTwo(q, x, y []float32) (float32, float32) {
	var a, b, c, d, e, f, g, h float32
	i := 0
	for ; i+8 <= len(q); i += 8 {
		q, x, y := (*[8]float32)(q[i:]), (*[8]float32)(x[i:]), (*[8]float32)(y[i:])
		a += float32(q[0] * x[0])
		b += float32(q[1] * x[1])
		c += float32(q[2] * x[2])
		d += float32(q[3] * x[3])
		e += float32(q[0] * y[0])
		f += float32(q[1] * y[1])
		g += float32(q[2] * y[2])
		h += float32(q[3] * y[3])
		a += float32(q[4] * x[4])
		b += float32(q[5] * x[5])
		c += float32(q[6] * x[6])
		d += float32(q[7] * x[7])
		e += float32(q[4] * y[4])
		f += float32(q[5] * y[5])
		g += float32(q[6] * y[6])
		h += float32(q[7] * y[7])
	}
	l, m := [4]float32{a, b, c, d}, [4]float32{e, f, g, h}
	for ; i < len(q); i++ {
		l[i%4] += float32(q[i] * x[i])
		m[i%4] += float32(q[i] * y[i])
	}
	return (l[0] + l[2]) + (l[1] + l[3]), (m[0] + m[2]) + (m[1] + m[3])
}
