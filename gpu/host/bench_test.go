package host

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// benchFloats returns a buffer of n random float32.
func benchFloats(b testing.TB, d *Device, n int) gpu.View {
	b.Helper()
	v := benchBytes(b, d, 4*n)
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	f := gpu.Floats(v.Buf.Bytes(), n)
	for i := range f {
		f[i] = float32(rng.NormFloat64()) / 16
	}
	return v
}

func benchBytes(b testing.TB, d *Device, n int) gpu.View {
	b.Helper()
	buf, err := d.NewBuffer(n)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(buf.Release)
	return gpu.View{Buf: buf}
}

// benchMatrix returns a matrix whose codes are random and whose scales are small.
func benchMatrix(b testing.TB, d *Device, rows, cols int, f quant.Format) gpu.Matrix {
	b.Helper()
	m := gpu.Matrix{Rows: rows, Cols: cols, Format: f, Weight: benchBytes(b, d, f.WeightBytes(rows, cols))}
	rng := rand.New(rand.NewPCG(2, 3))
	for i, w := 0, m.Weight.Buf.Bytes(); i < len(w); i++ {
		w[i] = byte(rng.Uint32())
		if f.Kind != quant.Affine && i%2 == 1 {
			w[i] = 0x3c // elements around 0.01
		}
	}
	if f.Kind == quant.Affine {
		m.Scales, m.Biases = benchBytes(b, d, f.ScaleBytes(rows, cols)), benchBytes(b, d, f.ScaleBytes(rows, cols))
		for i := 1; i < m.Scales.Buf.Len(); i += 2 {
			m.Scales.Buf.Bytes()[i], m.Biases.Buf.Bytes()[i] = 0x3c, 0xbd
		}
	}
	return m
}

var q4 = quant.Format{Kind: quant.Affine, Bits: 4, Group: 64}

// eachThreads runs a benchmark with one thread and with all.
func eachThreads(b *testing.B, f func(b *testing.B, d *Device)) {
	counts := []int{1}
	if n := runtime.GOMAXPROCS(0); n > 1 {
		counts = append(counts, n)
	}
	for _, n := range counts {
		b.Run(fmt.Sprintf("threads=%d", n), func(b *testing.B) { f(b, open(b, n)) })
	}
}

// measure runs c again and again and reports bytes a second.
func measure(b *testing.B, d *Device, c *gpu.Commands, bytes int) {
	b.Helper()
	if err := d.Run(c); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Run(c); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(bytes)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
}

func BenchmarkMatMul(b *testing.B) {
	formats := []quant.Format{q4, {Kind: quant.Affine, Bits: 8, Group: 64}, {Kind: quant.Affine, Bits: 2, Group: 64}, {Kind: quant.BF16}, {Kind: quant.F32}}
	for _, f := range formats {
		for _, rows := range []int{1, 32} {
			b.Run(fmt.Sprintf("format=%v/rows=%d", f, rows), func(b *testing.B) {
				eachThreads(b, func(b *testing.B, d *Device) {
					const out, in = 2048, 2048
					var c gpu.Commands
					c.EncodeMatMul(gpu.MatMul{W: benchMatrix(b, d, out, in, f), X: benchFloats(b, d, rows*in),
						Y: benchFloats(b, d, rows*out), Rows: rows})
					measure(b, d, &c, f.Bytes(out, in))
					b.ReportMetric(float64(rows*out*in)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
				})
			})
		}
	}
}

func BenchmarkExperts(b *testing.B) {
	for _, rows := range []int{1, 32} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			eachThreads(b, func(b *testing.B, d *Device) {
				const dim, inner, topK = 2048, 512, 8
				op := gpu.Experts{X: benchFloats(b, d, rows*dim), Y: benchFloats(b, d, rows*topK*dim),
					Scratch: benchFloats(b, d, rows*topK*2*inner), Rows: rows, TopK: topK}
				for e := range topK {
					expert := gpu.Expert{Gate: benchMatrix(b, d, inner, dim, q4), Up: benchMatrix(b, d, inner, dim, q4),
						Down: benchMatrix(b, d, dim, inner, q4)}
					for r := range rows {
						expert.Pairs = append(expert.Pairs, int32(r*topK+e))
					}
					op.Experts = append(op.Experts, expert)
				}
				var c gpu.Commands
				c.EncodeExperts(op)
				measure(b, d, &c, topK*3*q4.Bytes(inner, dim))
			})
		})
	}
}

// BenchmarkQueue is the time from Submit to OnDone's call for work that is next to nothing.
func BenchmarkQueue(b *testing.B) {
	eachThreads(b, func(b *testing.B, d *Device) {
		q, err := d.NewQueue()
		if err != nil {
			b.Fatal(err)
		}
		defer q.Close()
		var c gpu.Commands
		c.EncodeFill(gpu.Fill{Dst: benchFloats(b, d, 16), Bytes: 64})
		done := make(chan error, 1)
		f := func(err error) { done <- err }
		b.ReportAllocs()
		for b.Loop() {
			ticket, err := q.Submit(&c)
			if err != nil {
				b.Fatal(err)
			}
			ticket.OnDone(f)
			<-done
		}
		b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N), "us/trip")
	})
}

// BenchmarkKernels runs the inner loops of each variant on operands in the first cache.
func BenchmarkKernels(b *testing.B) {
	for _, k := range available() {
		for _, f := range []quant.Format{q4, {Kind: quant.BF16}} {
			for _, cols := range []int{512, 2048} {
				r := newKernelRow(f, cols)
				q := make([]float32, cols)
				b.Run(fmt.Sprintf("variant=%s/format=%v/cols=%d/kernel=one", k.name, f, cols), func(b *testing.B) {
					for b.Loop() {
						k.one(r.row, r.scales, r.biases, f, r.x[0], r.sums[0])
					}
					b.ReportMetric(float64(cols)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
				})
				b.Run(fmt.Sprintf("variant=%s/format=%v/cols=%d/kernel=two", k.name, f, cols), func(b *testing.B) {
					for b.Loop() {
						k.two(q, r.scales, r.biases, r.block(), r.x[0], r.sums[0], r.x[1], r.sums[1])
					}
					b.ReportMetric(2*float64(cols)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
				})
			}
		}
	}
}
