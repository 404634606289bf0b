package launch

import "github.com/moeflux/moeflux-actor/gpu"

// latentAttention is the folded form, which computes the same: queries times the heads' key blocks,
// attention over the latents themselves, and what that gives times the heads' value blocks. Nothing
// is expanded, so nothing grows with the length of the cache.
func (x *encoder) latentAttention(o *gpu.LatentAttention) {
	rows := 0
	for i := range o.Segments {
		rows = max(rows, o.Segments[i].Row+o.Segments[i].Rows)
	}
	width, at := o.Rank+o.Rope, 0
	folded := x.reserve(&at, rows*o.Heads*width)
	context := x.reserve(&at, rows*o.Heads*o.Rank)
	q := place{view: o.Q}
	x.headProduct(o, &gpu.HeadMatMul{W: o.Keys, Rows: rows, Heads: o.Heads, In: o.Nope, Out: o.Rank, HeadRows: o.KeyRows,
		Transposed: !o.KeysTransposed, XRowStride: o.QRowStride, XHeadStride: o.QHeadStride, YRowStride: o.Heads * width, YHeadStride: width},
		q, folded)
	x.copyBetween(o, &gpu.CopyHeads{Rows: rows, Heads: o.Heads, Dim: o.Rope, XRowStride: o.QRowStride, XHeadStride: o.QHeadStride,
		YRowStride: o.Heads * width, YHeadStride: width}, q.floats(o.Nope), folded.floats(o.Rank))
	x.attend(o, &gpu.Attention{QRowStride: o.Heads * width, QHeadStride: width, Heads: o.Heads, KVHeads: 1, HeadDim: width, ValueDim: o.Rank,
		Scale: o.Scale, Cache: o.Cache, Segments: o.Segments}, folded, context, at)
	// Rows that no segment has are left alone.
	for i := 0; i < len(o.Segments); {
		first, n := o.Segments[i].Row, 0
		for ; i < len(o.Segments) && o.Segments[i].Row == first+n; i++ {
			n += o.Segments[i].Rows
		}
		x.headProduct(o, &gpu.HeadMatMul{W: o.Values, Rows: n, Heads: o.Heads, In: o.Rank, Out: o.ValueDim, HeadRows: o.ValueRows,
			FirstRow: o.FirstValue, XRowStride: o.Heads * o.Rank, XHeadStride: o.Rank, YRowStride: o.Heads * o.ValueDim, YHeadStride: o.ValueDim},
			context.floats(first*o.Heads*o.Rank), place{view: o.Y}.floats(first*o.Heads*o.ValueDim))
	}
}
