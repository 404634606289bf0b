//go:build cuda && linux && (amd64 || arm64)

package cuda

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// opBench is device memory for the benchmarks of operations. Weights are random: with zeros some
// units draw less power and run faster.
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
	x.fill()
	return x
}

// fill makes weights random: bytes, of which every other has a bit cleared, so that scales are
// numbers below 2.
func (x *opBench) fill() {
	piece := make([]byte, 64<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < len(piece); i += 8 {
		binary.LittleEndian.PutUint64(piece[i:], rng.Uint64()&^0x4000_4000_4000_4000)
	}
	var c gpu.Commands
	for at := 0; at < benchWeights; at += len(piece) {
		gpu.Encode(&c, gpu.Upload{Dst: gpu.View{Buf: x.weights, Offset: at}, Src: piece})
	}
	gpu.Encode(&c, gpu.Upload{Dst: gpu.View{Buf: x.work}, Src: piece})
	t, err := x.q.Submit(&c)
	must(x.b, err)
	done := make(chan error, 1)
	t.OnDone(func(err error) { done <- err })
	must(x.b, <-done)
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

// run times encode, which adds an operation that reads so many bytes of weights: as many at a time
// as read more than a cache holds.
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
	q4 := quant.Affine(4, 64)
	panels, bf16 := q4, quant.BF16
	panels.Layout = quant.Panels
	for _, c := range []struct {
		rows, cols int
		f          quant.Format
	}{{8192, 4096, q4}, {8192, 4096, panels}, {4096, 2048, panels}, {512, 2048, panels}, {2048, 4096, panels}, {151936, 2048, panels}, {128, 2048, bf16}} {
		all := []int{1, 8, 32, 512}
		switch {
		case c.rows == 8192:
			all = []int{1, 2, 4, 8, 16, 32, 64, 128, 512}
		case c.rows > 10000:
			all = []int{1, 8, 32}
		}
		for _, rows := range all {
			x.run(fmt.Sprintf("matmul/format=%v/out=%d/in=%d/rows=%d", c.f, c.rows, c.cols, rows), bytesOf(c.f, c.rows, c.cols), func(cmd *gpu.Commands) {
				x.used = 0
				gpu.Encode(cmd, gpu.MatMul{W: x.matrix(c.rows, c.cols, c.f), X: x.floats(rows * c.cols), Y: x.floats(rows * c.rows), Rows: rows})
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
			gpu.Encode(cmd, op)
		})
		x.run(fmt.Sprintf("rmsnorm/dim=2048/rows=%d", rows), 0, func(cmd *gpu.Commands) {
			x.used = 0
			gpu.Encode(cmd, gpu.RMSNorm{X: x.floats(rows * hidden), Y: x.floats(rows * hidden), W: x.floats(hidden), Vectors: rows, Dim: hidden, Eps: 1e-6})
		})
		x.run(fmt.Sprintf("combine/dim=2048/rows=%d", rows), 0, func(cmd *gpu.Commands) {
			x.used = 0
			gpu.Encode(cmd, gpu.Combine{
				Routed: x.floats(rows * topK * hidden), Residual: x.floats(rows * hidden), Y: x.floats(rows * hidden), Weights: gpu.List[float32]{Host: make([]float32, rows*topK)}, Rows: rows, TopK: topK, Dim: hidden,
			})
		})
	}
}

// cached returns the cache of a sequence of so many positions, in pages of 64 that no device cache
// holds.
func (x *opBench) cached(positions, dim int, f gpu.KVFormat, group int) gpu.KV {
	const page = 64
	kv := gpu.KV{KVLayout: gpu.KVLayout{PageRows: page, Dim: dim, Format: f, Group: group}}
	kv.VOffset = kv.PartBytes()
	n := 2 * kv.PartBytes()
	for range (positions + page - 1) / page {
		if x.at+n > benchWeights {
			x.at = 0
		}
		kv.Pages = kv.Pages.Append(gpu.View{Buf: x.weights, Offset: x.at})
		x.at += (n + 255) &^ 255
	}
	return kv
}

// Attention and the operations with a recurrent state, of rows that are decoded together and of
// prompts.
func BenchmarkSequences(b *testing.B) {
	x := openOps(b)
	for _, a := range []struct {
		// rows of each sequence, the last of its positions
		heads, kv, dim, positions, sequences, rows int
	}{
		{32, 4, 128, 512, 1, 1}, {32, 4, 128, 4096, 1, 1}, {32, 4, 128, 32768, 1, 1}, {32, 4, 128, 512, 8, 1}, {32, 4, 128, 512, 32, 1},
		{32, 4, 128, 4096, 8, 1}, {32, 4, 128, 512, 1, 512}, {32, 4, 128, 4096, 1, 512},
		{16, 2, 256, 512, 1, 1}, {16, 2, 256, 32768, 1, 1}, {16, 2, 256, 512, 32, 1}, {16, 2, 256, 512, 1, 512},
	} {
		for _, group := range []int{0, a.dim} {
			f, each := gpu.KVF32, 8*a.kv*a.dim
			if group > 0 {
				f, each = gpu.KVInt8, 2*a.kv*(a.dim+4)
			}
			name := fmt.Sprintf("attention/heads=%d/kv=%d/dim=%d/cache=%v/sequences=%d/rows=%d/positions=%d", a.heads, a.kv, a.dim, f, a.sequences, a.rows, a.positions)
			x.run(name, a.sequences*a.positions*each, func(cmd *gpu.Commands) {
				x.used = 0
				rows := a.sequences * a.rows
				op := gpu.Attention{Q: x.floats(rows * a.heads * a.dim), Y: x.floats(rows * a.heads * a.dim), QRowStride: a.heads * a.dim, QHeadStride: a.dim,
					Heads: a.heads, KVHeads: a.kv, HeadDim: a.dim, Scale: 0.1}
				for s := range a.sequences {
					kv := x.cached(a.positions, a.kv*a.dim, f, group)
					op.Cache, op.Segments = kv.KVLayout, append(op.Segments, gpu.KVSegment{Row: s * a.rows, Rows: a.rows, Pos: a.positions - a.rows, Pages: kv.Pages})
				}
				gpu.Encode(cmd, op)
			})
		}
	}
	const keyHeads, valueHeads, dim, taps = 16, 32, 128, 4
	const channels = (2*keyHeads + valueHeads) * dim
	for _, c := range []struct{ sequences, rows int }{{1, 1}, {8, 1}, {32, 1}, {1, 512}} {
		rows := c.sequences * c.rows
		segments := func(floats int) (all []gpu.StateSegment) {
			for s := range c.sequences {
				all = append(all, gpu.StateSegment{Row: s * c.rows, Rows: c.rows, State: x.floats(floats)})
			}
			return all
		}
		x.run(fmt.Sprintf("deltarule/heads=16x32/dim=128/sequences=%d/rows=%d", c.sequences, c.rows), 0, func(cmd *gpu.Commands) {
			x.used = 0
			gpu.Encode(cmd, gpu.DeltaRule{QKV: x.floats(rows * channels), Alpha: x.floats(rows * valueHeads), Beta: x.floats(rows * valueHeads),
				ALog: x.floats(valueHeads), DtBias: x.floats(valueHeads), Y: x.floats(rows * valueHeads * dim), KeyHeads: keyHeads, ValueHeads: valueHeads,
				KeyDim: dim, ValueDim: dim, Segments: segments(valueHeads * dim * dim)})
		})
		x.run(fmt.Sprintf("causalconv/channels=8192/sequences=%d/rows=%d", c.sequences, c.rows), 0, func(cmd *gpu.Commands) {
			x.used = 0
			gpu.Encode(cmd, gpu.CausalConv{X: x.floats(rows * channels), W: x.floats(channels * taps), Y: x.floats(rows * channels), Channels: channels,
				Kernel: taps, Segments: segments((taps - 1) * channels)})
		})
	}
	const vocab = 151936
	logits := make([]float32, 32*vocab) // where they are equal, what is counted is another thing
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range logits {
		logits[i] = float32(3 * rng.NormFloat64())
	}
	var up gpu.Commands
	gpu.Encode(&up, gpu.Upload{Dst: gpu.View{Buf: x.work}, Src: gpu.FloatBytes(logits)})
	t, err := x.q.Submit(&up)
	must(b, err)
	done := make(chan error, 1)
	t.OnDone(func(err error) { done <- err })
	must(b, <-done)
	for _, rows := range []int{1, 32} {
		for _, k := range []int{1, 40} {
			x.run(fmt.Sprintf("topk/vocab=%d/rows=%d/k=%d", vocab, rows, k), 4*vocab*rows, func(cmd *gpu.Commands) {
				x.used = 0
				gpu.Encode(cmd, gpu.TopK{Logits: x.floats(rows * vocab), Values: x.floats(rows * k), Indices: x.floats(rows * k), Stats: x.floats(2 * rows),
					Rows: rows, Vocab: vocab, K: k})
			})
		}
	}
}
