package host

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// kernelRow is a row of W and two rows of X, the operands of kernels.
type kernelRow struct {
	format              quant.Format
	cols                int
	row, scales, biases []byte
	x, sums             [2][]float32
}

// bytesBeside returns n random bytes with no room after them in their slice.
func bytesBeside(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b[:n:n]
}

// bf16s returns n random bf16 of magnitude 1/32 or so.
func bf16s(rng *rand.Rand, n int) []byte {
	b := make([]byte, 2*n)
	for i := range n {
		v := math.Float32bits(float32(rng.NormFloat64() / 32))
		b[2*i], b[2*i+1] = byte(v>>16), byte(v>>24)
	}
	return b
}

func newKernelRow(f quant.Format, cols int) *kernelRow {
	rng := rand.New(rand.NewPCG(uint64(cols), uint64(f.Bits+f.Group)))
	r := &kernelRow{format: f, cols: cols}
	switch f.Kind {
	case quant.F32:
		v := make([]float32, cols)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		r.row = gpu.FloatBytes(v)
	case quant.BF16:
		r.row = bf16s(rng, cols)
	default:
		r.row = bytesBeside(rng, cols*f.Bits/8)
		r.scales, r.biases = bf16s(rng, cols/f.Group), bf16s(rng, cols/f.Group)
	}
	for i := range r.x {
		for range cols {
			r.x[i] = append(r.x[i], float32(rng.NormFloat64()))
		}
		for b := 0; b+sumInputs <= cols; b += sumInputs {
			r.sums[i] = append(r.sums[i], sumUp(r.x[i][b:b+sumInputs]))
		}
	}
	return r
}

// block is matrix.block.
func (r *kernelRow) block() int {
	m := matrix{format: r.format}
	return m.block()
}

// exact returns row·x[i] in float64, and Σ |w·x| with the scales' and biases' parts apart.
func (r *kernelRow) exact(i int) (y, magnitude float64) {
	q := make([]float32, r.cols)
	unpack(q, r.row, r.format)
	for c, x := range r.x[i] {
		scale, bias := 1., 0.
		if r.scales != nil {
			scale, bias = float64(bf16(r.scales, c/r.format.Group)), float64(bf16(r.biases, c/r.format.Group))
		}
		p, b := scale*float64(q[c])*float64(x), bias*float64(x)
		y += p + b
		magnitude += math.Abs(p) + math.Abs(b)
	}
	return y, magnitude
}

func kernelRows() []*kernelRow {
	var all []*kernelRow
	for _, bits := range []int{2, 4, 8} {
		for _, group := range []int{32, 64, 128} {
			for _, groups := range []int{1, 2, 3, 17, 64} {
				all = append(all, newKernelRow(quant.Format{Kind: quant.Affine, Bits: bits, Group: group}, groups*group))
			}
		}
	}
	for _, kind := range []quant.Kind{quant.BF16, quant.F32} {
		for _, cols := range []int{1, 3, 31, 32, 63, 64, 65, 127, 128, 200, 4099} {
			all = append(all, newKernelRow(quant.Format{Kind: kind}, cols))
		}
	}
	return all
}

// TestKernels wants from each variant the same bits from one, two and last, near the exact product, and unpacked rows
// with nothing written beside them.
func TestKernels(t *testing.T) {
	for _, k := range available() {
		for _, r := range kernelRows() {
			name := fmt.Sprintf("%s/%v/cols=%d", k.name, r.format, r.cols)
			q, want := make([]float32, r.cols+16), make([]float32, r.cols)
			for i := range q {
				q[i] = -7
			}
			k.unpack(q[:r.cols], r.row, r.format)
			unpack(want, r.row, r.format)
			for i, v := range q {
				if w := float32(-7); i >= r.cols && v != w || i < r.cols && v != want[i] {
					t.Fatalf("%s: unpacked element %d is %v", name, i, v)
				}
			}
			q = q[:r.cols]
			var two [2]float32
			two[0], two[1] = k.two(q, r.scales, r.biases, r.block(), r.x[0], r.sums[0], r.x[1], r.sums[1])
			for i := range two {
				one := k.one(r.row, r.scales, r.biases, r.format, r.x[i], r.sums[i])
				last := k.last(q, r.scales, r.biases, r.block(), r.x[i], r.sums[i])
				if math.Float32bits(one) != math.Float32bits(two[i]) || math.Float32bits(one) != math.Float32bits(last) {
					t.Errorf("%s: row %d of X: one %v, two %v, last %v, want the same", name, i, one, two[i], last)
				}
				// A lane adds up to 16 products of a group, then the groups; the sums of 32 inputs are rounded too.
				exact, magnitude := r.exact(i)
				if limit := 32 * magnitude / (1 << 24); !(math.Abs(float64(one)-exact) <= limit) {
					t.Errorf("%s: row %d of X: %v, want %v within %v", name, i, one, exact, limit)
				}
			}
		}
	}
}

// TestKernelBounds gives each operand one element too few: assembly must not see it.
func TestKernelBounds(t *testing.T) {
	panics := func(name string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s one too short did not panic", name)
			}
		}()
		f()
	}
	for _, k := range available() {
		if k.name == "portable" {
			continue // Go checks its own indices
		}
		r := newKernelRow(q4, 256)
		q, x, s := make([]float32, 256), r.x[0], r.sums[0]
		short, shortSums := x[:255:255], s[:len(s)-1:len(s)-1]
		shortBytes := func(b []byte) []byte { return b[: len(b)-1 : len(b)-1] }
		panics("one: row", func() { k.one(shortBytes(r.row), r.scales, r.biases, q4, x, s) })
		panics("one: scales", func() { k.one(r.row, shortBytes(r.scales), r.biases, q4, x, s) })
		panics("one: biases", func() { k.one(r.row, r.scales, shortBytes(r.biases), q4, x, s) })
		panics("one: sums", func() { k.one(r.row, r.scales, r.biases, q4, x, shortSums) })
		panics("one: bf16 row", func() { k.one(make([]byte, 511), nil, nil, quant.Format{Kind: quant.BF16}, x, nil) })
		panics("last: x", func() { k.last(q, r.scales, r.biases, 64, short, s) })
		panics("last: sums", func() { k.last(q, r.scales, r.biases, 64, x, shortSums) })
		panics("last: plain x", func() { k.last(q, nil, nil, 64, short, nil) })
		panics("two: x0", func() { k.two(q, r.scales, r.biases, 64, short, s, x, s) })
		panics("two: x1", func() { k.two(q, r.scales, r.biases, 64, x, s, short, s) })
		panics("two: sums0", func() { k.two(q, r.scales, r.biases, 64, x, shortSums, x, s) })
		panics("two: sums1", func() { k.two(q, r.scales, r.biases, 64, x, s, x, shortSums) })
		panics("two: plain x1", func() { k.two(q, nil, nil, 64, x, nil, short, nil) })
		panics("unpack: row", func() { k.unpack(q, shortBytes(r.row), q4) })
	}
}
