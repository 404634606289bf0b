package host

import (
	"fmt"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/route"
)

// everyOp returns one of each operation, large enough for all threads if that pays.
func everyOp(t testing.TB, d *Device) *gpu.Commands {
	const rows, dim, heads = 16, 256, 4
	f := func(n int) gpu.View { return benchFloats(t, d, n) }
	w := func(out, in int) gpu.Matrix { return benchMatrix(t, d, out, in, q4) }
	x, y := f(rows*dim), f(rows*dim)
	c := new(gpu.Commands)
	gpu.Encode(c, gpu.Upload{Dst: x, Src: make([]byte, 64)})
	gpu.Encode(c, gpu.Fill{Dst: y, Bytes: 64})
	gpu.Encode(c, gpu.Embed{Table: w(64, dim), Tokens: make([]int32, rows), Y: y})
	gpu.Encode(c, gpu.Gather{X: x, XRows: rows, Rows: make([]int32, rows), Y: y, Dim: dim})
	gpu.Encode(c, gpu.RMSNorm{X: x, W: f(dim), Y: y, Vectors: rows, Dim: dim, Eps: 1e-6})
	gpu.Encode(c, gpu.MatMul{W: w(dim, dim), X: x, Y: y, Rows: rows})
	gpu.Encode(c, gpu.MatMul{W: w(dim, dim), X: x, Y: y, Rows: 1})
	gpu.Encode(c, gpu.Add{A: x, B: x, Y: y, N: rows * dim})
	gpu.Encode(c, gpu.SigmoidGate{X: y, G: x, Rows: rows, Heads: heads, Dim: dim / heads, GRowStride: dim, GHeadStride: dim / heads})
	gpu.Encode(c, gpu.SwiGLU{Gate: x, Up: x, Y: y, Rows: rows, Dim: dim})
	gpu.Encode(c, gpu.Rope{X: y, Table: f(rows * 32), Rows: rows, Heads: heads, Rotary: 32, RowStride: dim, HeadStride: dim / heads})
	kv := gpu.KV{KVLayout: gpu.KVLayout{PageRows: rows, Dim: dim, VOffset: rows * dim * 4}, Pages: gpu.PagesOf(f(2 * rows * dim))}
	segments := []gpu.KVSegment{{Rows: rows, Pages: kv.Pages}}
	gpu.Encode(c, gpu.AppendKV{K: x, V: x, Cache: kv.KVLayout, Segments: segments})
	gpu.Encode(c, gpu.Attention{Q: x, Y: y, QRowStride: dim, QHeadStride: dim / heads, Heads: heads, KVHeads: heads,
		HeadDim: dim / heads, Scale: 1, Cache: kv.KVLayout, Segments: segments})
	kv.Format, kv.Group = gpu.KVInt8, dim/heads
	kv.VOffset = kv.PartBytes()
	gpu.Encode(c, gpu.AppendKV{K: x, V: x, Cache: kv.KVLayout, Segments: segments})
	gpu.Encode(c, gpu.Attention{Q: x, Y: y, QRowStride: dim, QHeadStride: dim / heads, Heads: heads, KVHeads: heads,
		HeadDim: dim / heads, Scale: 1, Cache: kv.KVLayout, Segments: segments})
	gpu.Encode(c, gpu.CausalConv{X: x, W: f(4 * dim), Y: y, Channels: dim, Kernel: 4,
		Segments: []gpu.StateSegment{{Rows: rows, State: f(3 * dim)}}})
	gpu.Encode(c, gpu.DeltaRule{QKV: f(rows * 3 * dim), Alpha: f(rows * heads), Beta: f(rows * heads), ALog: f(heads), DtBias: f(heads),
		Y: y, KeyHeads: heads, ValueHeads: heads, KeyDim: dim / heads, ValueDim: dim / heads,
		Segments: []gpu.StateSegment{{Rows: rows, State: f(dim * dim / heads)}}})
	gpu.Encode(c, gpu.GatedNorm{X: x, W: f(dim), Z: x, Y: y, Vectors: rows, Dim: dim, Eps: 1e-6})
	routed := f(rows * dim)
	picks, weights := f(rows), f(rows)
	gpu.Encode(c, gpu.Route{Scores: f(rows * 2), Bias: f(2), Picks: picks, Weights: weights, Rows: rows, Experts: 2, TopK: 1,
		Rule: route.Rule{Sigmoid: true, NGroup: 2, TopKGroup: 1}})
	expert := gpu.Expert{Gate: w(128, dim), Up: w(128, dim), Down: w(dim, 128)}
	gpu.Encode(c, gpu.Experts{X: x, Y: routed, Scratch: f(rows * 2 * 128), Rows: rows, TopK: 1,
		Table: &gpu.ExpertTable{Experts: []gpu.Expert{expert, expert}}, Picks: gpu.List[int32]{At: picks}})
	gpu.Encode(c, gpu.Combine{Routed: routed, Shared: x, SharedGate: x, Residual: x, Y: y, Weights: gpu.List[float32]{At: weights},
		Rows: rows, TopK: 1, Dim: dim})
	gpu.Encode(c, gpu.TopK{Logits: x, Values: f(rows * 8), Indices: f(rows * 8), Stats: f(2 * rows), Rows: rows, Vocab: dim, K: 8})
	gpu.Encode(c, gpu.Download{Src: y, Dst: make([]byte, 64)})
	return c
}

// TestNoAllocations checks that running one of each operation allocates nothing in the steady
// state.
func TestNoAllocations(t *testing.T) {
	for _, cfg := range allConfigs(1, 3) {
		t.Run(fmt.Sprintf("%+v", cfg), func(t *testing.T) {
			d := openConfig(t, cfg)
			c := everyOp(t, d)
			run := func() {
				if err := d.Run(c); err != nil {
					t.Fatal(err)
				}
			}
			for range 50 { // each worker must have met the largest chunk
				run()
			}
			if got := testing.AllocsPerRun(100, run); got != 0 {
				t.Errorf("%v allocations a run, want none", got)
			}
		})
	}
}
