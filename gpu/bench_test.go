package gpu

import "testing"

// BenchmarkCommands is what a host does for one layer of a decoded token before a device has it:
// Commands are emptied, filled and checked.
func BenchmarkCommands(b *testing.B) {
	const dim, heads, kvHeads, headDim, experts, topK, inner = 2048, 32, 4, 128, 128, 8, 768
	const width, kvWidth = heads * headDim, kvHeads * headDim
	x, y, z := floats(dim), floats(dim), floats(dim)
	q, k, v, attended := floats(width), floats(kvWidth), floats(kvWidth), floats(width)
	wq, wk, wv, wo := matrix(width, dim, q4), matrix(kvWidth, dim, q4), matrix(kvWidth, dim, q4), matrix(dim, width, q4)
	router, w, headW, table := matrix(experts, dim, f32), floats(dim), floats(headDim), floats(headDim)
	scores, picks, weights := floats(experts), floats(topK), floats(topK)
	routed, scratch := floats(topK*dim), floats(topK*2*inner)
	expert := Expert{Gate: matrix(inner, dim, q4), Up: matrix(inner, dim, q4), Down: matrix(dim, inner, q4)}
	all := &ExpertTable{Experts: make([]Expert, experts), At: room(experts * TableBytes)}
	for i := range all.Experts {
		all.Experts[i] = expert
	}
	cache := pages(2, 64, kvWidth)
	segments := []KVSegment{{Rows: 1, Pos: 100, Pages: cache.Pages}}
	var c Commands
	Encode(&c, Tabulate{all})
	if err := c.Check(); err != nil {
		b.Fatal(err)
	}
	c.Accept()
	b.ReportAllocs()
	for b.Loop() {
		c.Reset()
		Encode(&c, RMSNorm{X: x, W: w, Y: y, Vectors: 1, Dim: dim, Eps: 1e-6})
		Encode(&c, MatMul{W: wq, X: y, Y: q, Rows: 1})
		Encode(&c, MatMul{W: wk, X: y, Y: k, Rows: 1})
		Encode(&c, MatMul{W: wv, X: y, Y: v, Rows: 1})
		Encode(&c, RMSNorm{X: q, W: headW, Y: q, Vectors: heads, Dim: headDim, Eps: 1e-6})
		Encode(&c, RMSNorm{X: k, W: headW, Y: k, Vectors: kvHeads, Dim: headDim, Eps: 1e-6})
		Encode(&c, Rope{X: q, Table: table, Rows: 1, Heads: heads, Rotary: headDim, RowStride: width, HeadStride: headDim})
		Encode(&c, Rope{X: k, Table: table, Rows: 1, Heads: kvHeads, Rotary: headDim, RowStride: kvWidth, HeadStride: headDim})
		Encode(&c, AppendKV{K: k, V: v, Cache: cache.KVLayout, Segments: segments})
		Encode(&c, Attention{Q: q, Y: attended, QRowStride: width, QHeadStride: headDim, Heads: heads, KVHeads: kvHeads, HeadDim: headDim,
			Scale: 1, Cache: cache.KVLayout, Segments: segments})
		Encode(&c, MatMul{W: wo, X: attended, Y: z, Rows: 1})
		Encode(&c, Add{A: x, B: z, Y: x, N: dim})
		Encode(&c, RMSNorm{X: x, W: w, Y: y, Vectors: 1, Dim: dim, Eps: 1e-6})
		Encode(&c, MatMul{W: router, X: y, Y: scores, Rows: 1, Exact: true})
		Encode(&c, Route{Scores: scores, Picks: picks, Weights: weights, Rows: 1, Experts: experts, TopK: topK})
		Encode(&c, Experts{X: y, Y: routed, Scratch: scratch, Rows: 1, TopK: topK, Table: all, Picks: List[int32]{At: picks}})
		Encode(&c, Combine{Routed: routed, Residual: x, Y: x, Weights: List[float32]{At: weights}, Rows: 1, TopK: topK, Dim: dim})
		if err := c.Check(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.Len()), "ns/operation")
}
