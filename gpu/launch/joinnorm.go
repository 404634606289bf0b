package launch

import "github.com/moeflux/moeflux-actor/gpu"

// normOf returns the norm that ops begin with, if it is one of the dense rows of dim float32 at v.
func normOf(ops []gpu.Op, v gpu.View, floats int) *gpu.RMSNorm {
	o, ok := ops[0].(*gpu.RMSNorm)
	if !ok || o.X.IsZero() || address(o.X) != address(v) || or(o.XStride, o.Dim) != o.Dim || o.Vectors*o.Dim != floats {
		return nil
	}
	return o
}

// normOperands are the extents of a norm's weights and result.
func normOperands(o *gpu.RMSNorm) (w, y extent) {
	return extentOf(o.W, 4*o.Dim), floatsAt(o.Y, o.Vectors, o.Dim, or(o.YStride, o.Dim))
}

// joinAddNorm joins a sum and the norm of its result: the residual stream before a router or a
// layer.
func (x *encoder) joinAddNorm(ops []gpu.Op) int {
	a := ops[0].(*gpu.Add)
	o := normOf(ops[1:], a.Y, a.N)
	if o == nil {
		return 0
	}
	w, y := normOperands(o)
	z, first, second := extentOf(a.Y, 4*a.N), extentOf(a.A, 4*a.N), extentOf(a.B, 4*a.N)
	if !w.apart(z, first, second) || !y.sameOrApart(z, first, second) {
		return 0
	}
	s, l := normShapeOf(o.Dim), x.normLimbs(o, 2)
	x.begin(a, "add_norm", flag(!o.W.IsZero()), s.team, s.quads, flag(wideNorm(o, a.A, a.B, a.Y)), l[0].group, l[1].group)
	x.views(a.A, a.B, a.Y, o.W, o.Y)
	x.makeLimbs(&l, o.Y)
	constants(x, normParamsOf(o))
	x.endNorm(s, o.Vectors)
	return 2
}

type combineNormParams struct {
	rows, dim, topK, yStride uint32
	eps                      float32
}

// joinCombineNorm joins the end of a Mixture-of-Experts layer and the norm of its result, the next
// layer's.
func (x *encoder) joinCombineNorm(ops []gpu.Op) int {
	c := ops[0].(*gpu.Combine)
	floats := c.Rows * c.Dim
	o := normOf(ops[1:], c.Y, floats)
	if o == nil || o.Dim != c.Dim {
		return 0
	}
	w, y := normOperands(o)
	z, residual := extentOf(c.Y, 4*floats), extentOf(c.Residual, 4*floats)
	routed, shared := extentOf(c.Routed, 4*floats*c.TopK), extentOf(c.Shared, 4*floats)
	if !w.apart(z, residual) || !y.sameOrApart(z, residual) || !y.apart(routed, shared, extentOf(c.SharedGate, 4*c.Rows)) {
		return 0
	}
	s, l := normShapeOf(o.Dim), x.normLimbs(o, 2)
	x.begin(c, "combine_norm", flag(!o.W.IsZero()), s.team, s.quads, flag(wideNorm(o, c.Routed, c.Shared, c.Residual, c.Y)), combineShared(c), l[0].group, l[1].group)
	x.combineOperands(c)
	x.views(o.W, o.Y)
	x.makeLimbs(&l, o.Y)
	constants(x, combineNormParams{uint32(c.Rows), uint32(c.Dim), uint32(c.TopK), uint32(or(o.YStride, o.Dim)), o.Eps})
	x.endNorm(s, o.Vectors)
	return 2
}
