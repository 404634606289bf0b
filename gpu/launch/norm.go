package launch

import "github.com/moeflux/moeflux-actor/gpu"

// From teamDim channels on, a threadgroup of at least leastTeam simdgroups shares a vector. Shorter
// vectors take a simdgroup each, normTeam to a threadgroup. Each thread of a team has as few pieces
// of 4 channels as possible.
const (
	teamDim   = 1024
	leastTeam = 8
	mostTeam  = 32
	normTeam  = 8
)

// normShape is how many simdgroups share a vector and how many pieces of 4 channels a thread of
// them has, the defines of vectors.metal.
type normShape struct{ team, quads int }

// normShapeOf depends on the vectors' length alone, as the order of sums does.
func normShapeOf(dim int) normShape {
	s := normShape{1, 1}
	if dim >= teamDim {
		for s.team = leastTeam; s.team < mostTeam && s.team*128 < dim; {
			s.team *= 2
		}
	}
	for s.team*s.quads*128 < dim {
		s.quads *= 2
	}
	return s
}

type normParams struct {
	vectors, dim, xStride, yStride uint32
	eps                            float32
}

func normParamsOf(o *gpu.RMSNorm) normParams {
	return normParams{uint32(o.Vectors), uint32(o.Dim), uint32(or(o.XStride, o.Dim)), uint32(or(o.YStride, o.Dim)), o.Eps}
}

// wideNorm reports whether the vectors of o, and dense ones of the same length at others, can be
// loaded by 4 channels.
func wideNorm(o *gpu.RMSNorm, others ...gpu.View) bool {
	return o.Dim%4 == 0 && o.XStride%4 == 0 && o.YStride%4 == 0 && aligned(16, o.X, o.W, o.Y) && aligned(16, others...)
}

// endNorm ends a launch over vectors of a shape.
func (x *encoder) endNorm(s normShape, vectors int) {
	if s.team > 1 {
		x.end(32*s.team, vectors)
		return
	}
	x.end(32*normTeam, ceil(vectors, normTeam))
}

func (x *encoder) rmsNorm(o *gpu.RMSNorm) {
	s, l := normShapeOf(o.Dim), x.normLimbs(o, 1)
	x.begin(o, "rms_norm", flag(!o.W.IsZero()), s.team, s.quads, flag(wideNorm(o)), l[0].group, l[1].group)
	x.views(o.X, o.W, o.Y)
	x.makeLimbs(&l, o.Y)
	constants(x, normParamsOf(o))
	x.endNorm(s, o.Vectors)
}

type gatedNormParams struct {
	vectors, dim uint32
	eps          float32
}

func (x *encoder) gatedNorm(o *gpu.GatedNorm) {
	x.begin(o, "gated_norm")
	x.views(o.X, o.W, o.Z, o.Y)
	constants(x, gatedNormParams{uint32(o.Vectors), uint32(o.Dim), o.Eps})
	x.end(32*normTeam, ceil(o.Vectors, normTeam))
}

type layerNormParams struct {
	vectors, dim uint32
	eps          float32
}

func (x *encoder) layerNorm(o *gpu.LayerNorm) {
	x.begin(o, "layer_norm")
	x.views(o.X, o.W, o.B, o.Y)
	constants(x, layerNormParams{uint32(o.Vectors), uint32(o.Dim), o.Eps})
	x.end(32*normTeam, ceil(o.Vectors, normTeam))
}

type ropeParams struct{ n, heads, pairs, row, head uint32 }

func (x *encoder) rope(o *gpu.Rope) {
	n := o.Rows * o.Heads * o.Rotary / 2
	x.begin(o, "rope", flag(o.Interleaved))
	x.views(o.X, o.Table)
	constants(x, ropeParams{uint32(n), uint32(o.Heads), uint32(o.Rotary / 2), uint32(o.RowStride), uint32(o.HeadStride)})
	x.elements(n)
}
