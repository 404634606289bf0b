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

func BenchmarkAttention(b *testing.B) {
	for _, positions := range []int{512, 8192} {
		b.Run(fmt.Sprintf("positions=%d", positions), func(b *testing.B) {
			eachThreads(b, func(b *testing.B, d *Device) {
				const heads, kvHeads, dim, page = 16, 2, 256, 256
				kv := gpu.KV{PageRows: page, Dim: kvHeads * dim, VOffset: page * kvHeads * dim * 4}
				for p := 0; p < positions; p += page {
					kv.Pages = append(kv.Pages, benchFloats(b, d, 2*page*kvHeads*dim))
				}
				var c gpu.Commands
				c.EncodeAttention(gpu.Attention{Q: benchFloats(b, d, heads*dim), Y: benchFloats(b, d, heads*dim), QRowStride: heads * dim,
					QHeadStride: dim, Heads: heads, KVHeads: kvHeads, HeadDim: dim, Scale: 1. / 16,
					Segments: []gpu.KVSegment{{Rows: 1, Pos: positions - 1, KV: kv}}})
				measure(b, d, &c, positions*kvHeads*dim*8)
			})
		})
	}
}

func BenchmarkDelta(b *testing.B) {
	for _, rows := range []int{1, 32} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			eachThreads(b, func(b *testing.B, d *Device) {
				const keyHeads, valueHeads, dim = 16, 32, 128
				var c gpu.Commands
				c.EncodeDeltaRule(gpu.DeltaRule{QKV: benchFloats(b, d, rows*(2*keyHeads+valueHeads)*dim),
					Alpha: benchFloats(b, d, rows*valueHeads), Beta: benchFloats(b, d, rows*valueHeads),
					ALog: benchFloats(b, d, valueHeads), DtBias: benchFloats(b, d, valueHeads),
					Y: benchFloats(b, d, rows*valueHeads*dim), KeyHeads: keyHeads, ValueHeads: valueHeads, KeyDim: dim, ValueDim: dim,
					Segments: []gpu.StateSegment{{Rows: rows, State: benchFloats(b, d, valueHeads*dim*dim)}}})
				measure(b, d, &c, rows*valueHeads*dim*dim*8)
			})
		})
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
