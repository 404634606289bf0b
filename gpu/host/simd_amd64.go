//go:build amd64 && !noasm

package host

import (
	"golang.org/x/sys/cpu"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

var (
	avx512 = kernels{
		name: "avx512", pair: 2, rate: 150, quantise: quantiseAVX512,
		plain: (&plainCode{oneBF16AVX512, lastAVX512, twoAVX512, unpack16AVX512}).kernels(),
		int8s: [3][]panelKernel{
			{mulInt8Q2N1AVX512, mulInt8Q2N2AVX512, mulInt8Q2N3AVX512, mulInt8Q2N4AVX512, mulInt8Q2N5AVX512, mulInt8Q2N6AVX512},
			{mulInt8Q4N1AVX512, mulInt8Q4N2AVX512, mulInt8Q4N3AVX512, mulInt8Q4N4AVX512, mulInt8Q4N5AVX512, mulInt8Q4N6AVX512},
			{mulInt8Q8N1AVX512, mulInt8Q8N2AVX512, mulInt8Q8N3AVX512, mulInt8Q8N4AVX512, mulInt8Q8N5AVX512, mulInt8Q8N6AVX512},
		},
		floats: [3][]panelKernel{
			{mulF32Q2N1AVX512, mulF32Q2N2AVX512, mulF32Q2N3AVX512, mulF32Q2N4AVX512, mulF32Q2N5AVX512, mulF32Q2N6AVX512},
			{mulF32Q4N1AVX512, mulF32Q4N2AVX512, mulF32Q4N3AVX512, mulF32Q4N4AVX512, mulF32Q4N5AVX512, mulF32Q4N6AVX512},
			{mulF32Q8N1AVX512, mulF32Q8N2AVX512, mulF32Q8N3AVX512, mulF32Q8N4AVX512, mulF32Q8N5AVX512, mulF32Q8N6AVX512},
		},
		arrange:       [3]func(dst, src *byte, stride, blocks int){arrange2AVX512, arrange4AVX512, arrange8AVX512},
		arrangeScales: arrangeScalesAVX512,
	}
	avx2 = kernels{
		name: "avx2", pair: 1, rate: 40, quantise: quantiseAVX2,
		plain: (&plainCode{oneBF16AVX2, lastAVX2, twoAVX2, unpack16AVX2}).kernels(),
		int8s: [3][]panelKernel{
			{mulInt8Q2N1AVX2, mulInt8Q2N2AVX2, mulInt8Q2N3AVX2, mulInt8Q2N4AVX2},
			{mulInt8Q4N1AVX2, mulInt8Q4N2AVX2, mulInt8Q4N3AVX2, mulInt8Q4N4AVX2},
			{mulInt8Q8N1AVX2, mulInt8Q8N2AVX2, mulInt8Q8N3AVX2, mulInt8Q8N4AVX2},
		},
		floats: [3][]panelKernel{
			{mulF32Q2N1AVX2, mulF32Q2N2AVX2, mulF32Q2N3AVX2, mulF32Q2N4AVX2},
			{mulF32Q4N1AVX2, mulF32Q4N2AVX2, mulF32Q4N3AVX2, mulF32Q4N4AVX2},
			{mulF32Q8N1AVX2, mulF32Q8N2AVX2, mulF32Q8N3AVX2, mulF32Q8N4AVX2},
		},
		arrange:       [3]func(dst, src *byte, stride, blocks int){arrange2AVX2, arrange4AVX2, arrange8AVX2},
		arrangeScales: arrangeScalesAVX2,
	}
)

// available returns the variants that this processor runs, the best first. Processors with AVX-512 but without its
// products of bytes run AVX2.
func available() []*kernels {
	var all []*kernels
	x := &cpu.X86
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512VNNI && x.HasFMA {
		all = append(all, &avx512)
	}
	if x.HasAVX2 && x.HasFMA {
		all = append(all, &avx2)
	}
	return append(all, &portable)
}

// plainCode is the assembly for rows of bf16 and float32, in blocks of blockInputs.
type plainCode struct {
	bf16  func(row *byte, x *float32, blocks int) float32
	last  func(q, x *float32, blocks int) float32
	two   func(q, x0, x1 *float32, blocks int) (float32, float32)
	widen func(dst *float32, row *byte, blocks int)
}

func (c *plainCode) kernels() plainKernels {
	return plainKernels{one: c.one, two: c.rowTwo, last: c.rowLast, widen: c.rowWiden}
}

func (c *plainCode) one(row []byte, kind quant.Kind, x []float32) float32 {
	if kind == quant.F32 {
		return c.rowLast(gpu.Floats(row, len(x)), x)
	}
	row = row[:2*len(x)]
	var y float32
	n := len(x) / blockInputs
	if n > 0 {
		y = c.bf16(&row[0], &x[0], n)
	}
	if n *= blockInputs; n < len(x) {
		y += dotBF16(row[2*n:], x[n:])
	}
	return y
}

func (c *plainCode) rowLast(q, x []float32) float32 {
	x = x[:len(q)]
	var y float32
	n := len(q) / blockInputs
	if n > 0 {
		y = c.last(&q[0], &x[0], n)
	}
	if n *= blockInputs; n < len(q) {
		y += dot(q[n:], x[n:])
	}
	return y
}

func (c *plainCode) rowTwo(q, x0, x1 []float32) (y0, y1 float32) {
	x0, x1 = x0[:len(q)], x1[:len(q)]
	n := len(q) / blockInputs
	if n > 0 {
		y0, y1 = c.two(&q[0], &x0[0], &x1[0], n)
	}
	if n *= blockInputs; n < len(q) {
		y0 += dot(q[n:], x0[n:])
		y1 += dot(q[n:], x1[n:])
	}
	return y0, y1
}

func (c *plainCode) rowWiden(dst []float32, row []byte, kind quant.Kind) {
	if kind == quant.F32 {
		widen(dst, row, kind)
		return
	}
	row = row[:2*len(dst)]
	const block = 32 // elements an iteration of the assembly takes
	n := len(dst) / block
	if n > 0 {
		c.widen(&dst[0], &row[0], n)
	}
	if n *= block; n < len(dst) {
		widen(dst[n:], row[2*n:], kind)
	}
}
