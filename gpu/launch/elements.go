package launch

import "github.com/moeflux/moeflux-actor/gpu"

// elementThreads is how many threads a threadgroup of an elementwise kernel has.
const elementThreads = 256

// elements ends a launch with one thread for each of n elements.
func (x *encoder) elements(n int) { x.end(elementThreads, ceil(n, elementThreads)) }

type addParams struct{ n uint32 }

func (x *encoder) add(o *gpu.Add) {
	x.begin(o, "add")
	x.views(o.A, o.B, o.Y)
	constants(x, addParams{uint32(o.N)})
	x.elements(o.N)
}

func (x *encoder) swiglu(o *gpu.SwiGLU) {
	x.begin(o, "swiglu", clampedBy(o.Clamp))
	x.views(o.Gate, o.Up, o.Y)
	constants(x, unitParams{uint32(o.Rows * o.Dim), o.Clamp.Limit, o.Clamp.Alpha})
	x.elements(o.Rows * o.Dim)
}

type unitParams struct {
	n            uint32
	limit, alpha float32
}

// clampedBy is the CLAMPED of the kernels.
func clampedBy(c gpu.Clamp) int { return flag(c.Limit > 0) + flag(c.Limit > 0 && c.Alpha == 0) }

type gateParams struct{ n, heads, dim, gRow, gHead, gChannel uint32 }

func (x *encoder) sigmoidGate(o *gpu.SigmoidGate) {
	n := o.Rows * o.Heads * o.Dim
	x.begin(o, "sigmoid_gate")
	x.views(o.X, o.G)
	constants(x, gateParams{uint32(n), uint32(o.Heads), uint32(o.Dim), uint32(o.GRowStride), uint32(o.GHeadStride), uint32(flag(!o.PerHead))})
	x.elements(n)
}

type copyParams struct{ n, heads, dim, xRow, xHead, yRow, yHead uint32 }

func (x *encoder) copyHeads(o *gpu.CopyHeads) {
	x.copyBetween(o, o, place{view: o.X}, place{view: o.Y})
}

// copyBetween copies as o says, but between from and to, for op.
func (x *encoder) copyBetween(op gpu.Op, o *gpu.CopyHeads, from, to place) {
	n := o.Rows * o.Heads * o.Dim
	x.begin(op, "copy_heads")
	x.places(from, to)
	constants(x, copyParams{uint32(n), uint32(o.Heads), uint32(o.Dim), uint32(o.XRowStride), uint32(o.XHeadStride), uint32(o.YRowStride), uint32(o.YHeadStride)})
	x.elements(n)
}

type gatherParams struct{ n, dim uint32 }

func (x *encoder) gather(o *gpu.Gather) {
	n := len(o.Rows) * o.Dim
	x.begin(o, "gather")
	x.views(o.X)
	x.tableAt(table(x, o.Rows))
	x.views(o.Y)
	constants(x, gatherParams{uint32(n), uint32(o.Dim)})
	x.elements(n)
}

type combineParams struct{ n, dim, topK uint32 }

func (x *encoder) combine(o *gpu.Combine) {
	x.begin(o, "combine", combineShared(o))
	x.combineOperands(o)
	constants(x, combineParams{uint32(o.Rows * o.Dim), uint32(o.Dim), uint32(o.TopK)})
	x.elements(o.Rows * o.Dim)
}

// combineShared is the value of SHARED.
func combineShared(o *gpu.Combine) int {
	return flag(!o.Shared.IsZero()) + flag(!o.SharedGate.IsZero())
}

// combineOperands binds what is combined, and where to.
func (x *encoder) combineOperands(o *gpu.Combine) {
	x.views(o.Routed, o.Shared, o.SharedGate, o.Residual)
	list(x, &o.Weights)
	x.views(o.Y)
}
