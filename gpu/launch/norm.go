package launch

import "github.com/moeflux/moeflux-actor/gpu"

// From teamDim channels on a threadgroup of normTeam simdgroups shares a vector; shorter ones take a simdgroup each.
const (
	teamDim  = 1024
	normTeam = 8
)

type normParams struct {
	vectors, dim, xStride, yStride uint32
	eps                            float32
}

func (x *encoder) rmsNorm(o *gpu.RMSNorm) {
	team, groups := 1, ceil(o.Vectors, normTeam)
	if o.Dim >= teamDim {
		team, groups = normTeam, o.Vectors
	}
	x.begin(o, "rms_norm", flag(!o.W.IsZero()), team)
	x.views(o.X, o.W, o.Y)
	constants(x, normParams{uint32(o.Vectors), uint32(o.Dim), uint32(or(o.XStride, o.Dim)), uint32(or(o.YStride, o.Dim)), o.Eps})
	x.end(32*normTeam, groups)
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

type ropeParams struct{ n, heads, pairs, row, head uint32 }

func (x *encoder) rope(o *gpu.Rope) {
	n := o.Rows * o.Heads * o.Rotary / 2
	x.begin(o, "rope", flag(o.Interleaved))
	x.views(o.X, o.Table)
	constants(x, ropeParams{uint32(n), uint32(o.Heads), uint32(o.Rotary / 2), uint32(o.RowStride), uint32(o.HeadStride)})
	x.elements(n)
}
