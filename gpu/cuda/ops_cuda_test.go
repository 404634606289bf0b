//go:build cuda && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// opBench is device memory for the benchmarks of operations. Weights are zeros: the time does not depend on them.
type opBench struct {
	b       *testing.B
	d       *Device
	q       gpu.Queue
	weights gpu.Buffer // walked through, so that no cache holds them
	at      int
	work    gpu.Buffer
	used    int
}

const benchWeights = 2 << 30

func openOps(b *testing.B) *opBench {
	x := &opBench{b: b, d: openDevice(b)}
	for _, p := range []struct {
		buf *gpu.Buffer
		n   int
	}{{&x.weights, benchWeights}, {&x.work, 1 << 30}} {
		var err error
		*p.buf, err = x.d.NewBuffer(p.n)
		must(b, err)
		b.Cleanup((*p.buf).Release)
	}
	var err error
	x.q, err = x.d.NewQueue()
	must(b, err)
	b.Cleanup(func() { must(b, x.q.Close()) })
	return x
}

// floats returns room for n float32.
func (x *opBench) floats(n int) gpu.View {
	v := gpu.View{Buf: x.work, Offset: x.used}
	x.used += (4*n + 255) &^ 255
	return v
}

// matrix returns the next matrix of the weights.
func (x *opBench) matrix(rows, cols int, f quant.Format) gpu.Matrix {
	take := func(n int) gpu.View {
		n = (n + 255) &^ 255
		if x.at+n > benchWeights {
			x.at = 0
		}
		v := gpu.View{Buf: x.weights, Offset: x.at}
		x.at += n
		return v
	}
	m := gpu.Matrix{Rows: rows, Cols: cols, Format: f, Weight: take(f.WeightBytes(rows, cols))}
	if n := f.ScaleBytes(rows, cols); n > 0 {
		m.Scales, m.Biases = take(n), take(n)
	}
	return m
}

// run times encode, which adds an operation that reads so many bytes of weights: as many at a time as read more than a cache holds.
func (x *opBench) run(name string, bytes int, encode func(c *gpu.Commands)) {
	x.b.Run(name, func(b *testing.B) {
		x.used = 0
		each := 20
		if bytes > 0 {
			each = min(max(each, 200<<20/bytes), 200)
		}
		var ns int64
		var c gpu.Commands
		n := 0
		round := func() int64 {
			c.Reset()
			x.at = 0 // the same memory each time, so that it is the same graph
			for range each {
				encode(&c)
			}
			t, err := x.q.Submit(&c)
			must(b, err)
			done := make(chan error, 1)
			var took int64
			t.OnDone(func(err error) { took = t.DeviceNS(); done <- err })
			must(b, <-done)
			return took
		}
		for range 3 {
			round()
		}
		for b.Loop() {
			ns += round()
			n += each
		}
		b.ReportMetric(float64(ns)/float64(n), "device-ns/op")
		if bytes > 0 {
			b.ReportMetric(float64(bytes)*float64(n)/float64(ns), "GB/s")
		}
		b.ReportMetric(0, "ns/op")
	})
}

func bytesOf(f quant.Format, rows, cols int) int {
	return f.WeightBytes(rows, cols) + 2*f.ScaleBytes(rows, cols)
}

// The operations of a decoded token at real sizes.
func BenchmarkOps(b *testing.B) {
	x := openOps(b)
	q4 := quant.Format{Kind: quant.Affine, Bits: 4, Group: 64}
	panels, bf16 := q4, quant.Format{Kind: quant.BF16}
	panels.Layout = quant.Panels
	for _, c := range []struct {
		rows, cols int
		f          quant.Format
	}{{8192, 4096, q4}, {8192, 4096, panels}, {4096, 2048, panels}, {512, 2048, panels}, {2048, 4096, panels}, {151936, 2048, panels}, {128, 2048, bf16}} {
		for _, rows := range []int{1, 8, 32, 512} {
			if rows > 32 && c.rows > 10000 {
				continue
			}
			x.run(fmt.Sprintf("matmul/format=%v/out=%d/in=%d/rows=%d", c.f, c.rows, c.cols, rows), bytesOf(c.f, c.rows, c.cols), func(cmd *gpu.Commands) {
				x.used = 0
				cmd.EncodeMatMul(gpu.MatMul{W: x.matrix(c.rows, c.cols, c.f), X: x.floats(rows * c.cols), Y: x.floats(rows * c.rows), Rows: rows})
			})
		}
	}
	const hidden, inner, topK = 2048, 768, 8
	for _, rows := range []int{1, 8, 32, 512} {
		experts, picks := min(128, rows*topK), make([]int32, rows*topK)
		for p := range picks {
			picks[p] = int32(p % experts)
		}
		x.run(fmt.Sprintf("experts/hidden=2048/inner=768/experts=%d/rows=%d", experts, rows), experts*3*bytesOf(panels, inner, hidden), func(cmd *gpu.Commands) {
			x.used = 0
			op := gpu.Experts{X: x.floats(rows * hidden), Y: x.floats(rows * topK * hidden), Scratch: x.floats(rows * topK * 2 * inner), Rows: rows, TopK: topK,
				Table: new(gpu.ExpertTable), Picks: gpu.List[int32]{Host: picks}}
			for range experts {
				op.Table.Experts = append(op.Table.Experts, gpu.Expert{
					Gate: x.matrix(inner, hidden, panels), Up: x.matrix(inner, hidden, panels), Down: x.matrix(hidden, inner, panels),
				})
			}
			cmd.EncodeExperts(op)
		})
		x.run(fmt.Sprintf("rmsnorm/dim=2048/rows=%d", rows), 0, func(cmd *gpu.Commands) {
			x.used = 0
			cmd.EncodeRMSNorm(gpu.RMSNorm{X: x.floats(rows * hidden), Y: x.floats(rows * hidden), W: x.floats(hidden), Vectors: rows, Dim: hidden, Eps: 1e-6})
		})
		x.run(fmt.Sprintf("combine/dim=2048/rows=%d", rows), 0, func(cmd *gpu.Commands) {
			x.used = 0
			cmd.EncodeCombine(gpu.Combine{
				Routed: x.floats(rows * topK * hidden), Residual: x.floats(rows * hidden), Y: x.floats(rows * hidden), Weights: gpu.List[float32]{Host: make([]float32, rows*topK)}, Rows: rows, TopK: topK, Dim: hidden,
			})
		})
	}
	for _, pos := range []int{512, 4096, 16384} {
		const heads, kv, dim, page = 32, 4, 128, 64
		x.run(fmt.Sprintf("attention/heads=32/kv=4/dim=128/positions=%d", pos), 2*4*pos*kv*dim, func(cmd *gpu.Commands) {
			x.used = 0
			op := gpu.Attention{Q: x.floats(heads * dim), Y: x.floats(heads * dim), QRowStride: heads * dim, QHeadStride: dim, Heads: heads, KVHeads: kv, HeadDim: dim, Scale: 0.1}
			pages := make([]gpu.View, (pos+page)/page)
			for i := range pages {
				pages[i] = x.floats(2 * page * kv * dim)
			}
			op.Segments = []gpu.KVSegment{{Rows: 1, Pos: pos - 1, KV: gpu.KV{Pages: pages, PageRows: page, Dim: kv * dim, VOffset: 4 * page * kv * dim}}}
			cmd.EncodeAttention(op)
		})
	}
}
