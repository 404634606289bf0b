//go:build amd64 && !noasm

package host

import (
	"math/bits"

	"golang.org/x/sys/cpu"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

//go:generate sh -c "cd gen && go run . -isa avx512 -pkg host -out ../avx512_amd64.s -stubs ../avx512_amd64.go"
//go:generate sh -c "cd gen && go run . -isa avx2 -pkg host -out ../avx2_amd64.s -stubs ../avx2_amd64.go"

// simd is the assembly of one instruction set. Bits are at place log2(bits)-1, groups at log2(group)-5.
type simd struct {
	ones     [3][3]func(row, scales, biases *byte, x, sums *float32, groups int) float32
	lasts    [3]func(q *float32, scales, biases *byte, x, sums *float32, groups int) float32
	twos     [3]func(q *float32, scales, biases *byte, x0, sums0, x1, sums1 *float32, groups int) (float32, float32)
	unpacks  [4]func(dst *float32, row *byte, blocks int) // the last is bf16
	bf16     func(row *byte, x *float32, blocks int) float32
	lastFlat func(q, x *float32, blocks int) float32
	twoFlat  func(q, x0, x1 *float32, blocks int) (float32, float32)
}

var (
	avx512Code = simd{
		ones: [3][3]func(row, scales, biases *byte, x, sums *float32, groups int) float32{
			{one2x32AVX512, one2x64AVX512, one2x128AVX512},
			{one4x32AVX512, one4x64AVX512, one4x128AVX512},
			{one8x32AVX512, one8x64AVX512, one8x128AVX512},
		},
		lasts:   [3]func(q *float32, scales, biases *byte, x, sums *float32, groups int) float32{last32AVX512, last64AVX512, last128AVX512},
		twos:    [3]func(q *float32, scales, biases *byte, x0, sums0, x1, sums1 *float32, groups int) (float32, float32){two32AVX512, two64AVX512, two128AVX512},
		unpacks: [4]func(dst *float32, row *byte, blocks int){unpack2AVX512, unpack4AVX512, unpack8AVX512, unpack16AVX512},
		bf16:    oneBF16AVX512, lastFlat: lastAVX512, twoFlat: twoAVX512,
	}
	avx2Code = simd{
		ones: [3][3]func(row, scales, biases *byte, x, sums *float32, groups int) float32{
			{one2x32AVX2, one2x64AVX2, one2x128AVX2},
			{one4x32AVX2, one4x64AVX2, one4x128AVX2},
			{one8x32AVX2, one8x64AVX2, one8x128AVX2},
		},
		lasts:   [3]func(q *float32, scales, biases *byte, x, sums *float32, groups int) float32{last32AVX2, last64AVX2, last128AVX2},
		twos:    [3]func(q *float32, scales, biases *byte, x0, sums0, x1, sums1 *float32, groups int) (float32, float32){two32AVX2, two64AVX2, two128AVX2},
		unpacks: [4]func(dst *float32, row *byte, blocks int){unpack2AVX2, unpack4AVX2, unpack8AVX2, unpack16AVX2},
		bf16:    oneBF16AVX2, lastFlat: lastAVX2, twoFlat: twoAVX2,
	}
	avx512 = avx512Code.kernels("avx512")
	avx2   = avx2Code.kernels("avx2")
)

// available returns the variants that this processor runs, the best first. AVX-512 takes codes apart with VBMI:
// processors that lack it run AVX2.
func available() []*kernels {
	var all []*kernels
	x := &cpu.X86
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512VBMI && x.HasFMA {
		all = append(all, &avx512)
	}
	if x.HasAVX2 && x.HasFMA {
		all = append(all, &avx2)
	}
	return append(all, &portable)
}

func (s *simd) kernels(name string) kernels {
	return kernels{name: name, one: s.one, two: s.two, last: s.last, unpack: s.unpack}
}

func bitsAt(n int) int  { return bits.TrailingZeros(uint(n)) - 1 }
func groupAt(n int) int { return bits.TrailingZeros(uint(n)) - 5 }

// checkGroups panics where the loops over groups would leave their slices, and returns how many groups there are.
func checkGroups(cols, group int, scales, biases []byte, sums []float32) int {
	n := cols / group
	_, _, _ = scales[2*n-1], biases[2*n-1], sums[n*group/sumInputs-1]
	return n
}

func (s *simd) one(row, scales, biases []byte, f quant.Format, x, sums []float32) float32 {
	switch f.Kind {
	case quant.F32:
		return s.last(gpu.Floats(row, len(x)), nil, nil, blockInputs, x, nil)
	case quant.BF16:
		row = row[:2*len(x)]
		var y float32
		n := len(x) / blockInputs
		if n > 0 {
			y = s.bf16(&row[0], &x[0], n)
		}
		if n *= blockInputs; n < len(x) {
			y += dotBF16(row[2*n:], x[n:])
		}
		return y
	}
	n := checkGroups(len(x), f.Group, scales, biases, sums)
	_ = row[len(x)*f.Bits/8-1]
	return s.ones[bitsAt(f.Bits)][groupAt(f.Group)](&row[0], &scales[0], &biases[0], &x[0], &sums[0], n)
}

func (s *simd) last(q []float32, scales, biases []byte, block int, x, sums []float32) float32 {
	x = x[:len(q)]
	if scales != nil {
		n := checkGroups(len(q), block, scales, biases, sums)
		return s.lasts[groupAt(block)](&q[0], &scales[0], &biases[0], &x[0], &sums[0], n)
	}
	var y float32
	n := len(q) / blockInputs
	if n > 0 {
		y = s.lastFlat(&q[0], &x[0], n)
	}
	if n *= blockInputs; n < len(q) {
		y += dot(q[n:], x[n:])
	}
	return y
}

func (s *simd) two(q []float32, scales, biases []byte, block int, x0, sums0, x1, sums1 []float32) (y0, y1 float32) {
	x0, x1 = x0[:len(q)], x1[:len(q)]
	if scales != nil {
		n := checkGroups(len(q), block, scales, biases, sums0)
		checkGroups(len(q), block, scales, biases, sums1)
		return s.twos[groupAt(block)](&q[0], &scales[0], &biases[0], &x0[0], &sums0[0], &x1[0], &sums1[0], n)
	}
	n := len(q) / blockInputs
	if n > 0 {
		y0, y1 = s.twoFlat(&q[0], &x0[0], &x1[0], n)
	}
	if n *= blockInputs; n < len(q) {
		y0 += dot(q[n:], x0[n:])
		y1 += dot(q[n:], x1[n:])
	}
	return y0, y1
}

func (s *simd) unpack(dst []float32, row []byte, f quant.Format) {
	width := f.Bits
	switch f.Kind {
	case quant.F32:
		unpack(dst, row, f)
		return
	case quant.BF16:
		width = 16
	}
	row = row[:len(dst)*width/8]
	const block = 32 // elements an iteration of the assembly takes, the smallest group
	n := len(dst) / block
	if n > 0 {
		s.unpacks[bitsAt(width)](&dst[0], &row[0], n)
	}
	if n *= block; n < len(dst) { // only bf16 has such lengths
		unpack(dst[n:], row[n*width/8:], f)
	}
}
