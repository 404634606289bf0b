package launch

import (
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

type expertMatrix struct{ codes, scales, biases uint64 }

type expertWeights struct {
	gate, up, down             expertMatrix
	gateBias, upBias, downBias uint64
}

// expertEntry is the size of an entry in a table of experts, at most gpu.TableBytes.
const expertEntry = int(unsafe.Sizeof(expertWeights{}))

func expertWeightsOf(e *gpu.Expert) expertWeights {
	return expertWeights{
		gate: expertMatrixOf(&e.Gate), up: expertMatrixOf(&e.Up), down: expertMatrixOf(&e.Down),
		gateBias: addressOf(e.GateBias), upBias: addressOf(e.UpBias), downBias: addressOf(e.DownBias),
	}
}

type expertParams struct {
	wRows, wCols, divide, xStride, yStride, groupBits uint32
	limit, alpha                                      float32
}

type expertGateParams struct {
	n, inner     uint32
	limit, alpha float32
}

// The values of WHICH.
const (
	whichGate = iota
	whichUp
	whichDown
)

func expertMatrixOf(m *gpu.Matrix) expertMatrix {
	return expertMatrix{address(m.Weight), addressOf(m.Scales), addressOf(m.Biases)}
}

// expertBatch is what the launches of one operation have in common.
type expertBatch struct {
	o          *gpu.Experts
	table      int // where the experts' table is, if it travels with the operation
	wide       [3]bool
	inner, dim int
	// the values of BIASED, CLAMPED and, of the next limbs_experts, SETTLED
	biased, clamped, settled int
	jobTables
}

// experts runs all experts: the pairs are grouped, then come gates and ups, then downs. The gated
// inputs of downs lie where Scratch has a pair's first half.
func (x *encoder) experts(o *gpu.Experts) error {
	first := &o.Table.Experts[0]
	b := expertBatch{o: o, wide: wideExperts(o), inner: first.Gate.Rows, dim: first.Gate.Cols, biased: flag(first.Biased()), clamped: clampedBy(o.Clamp)}
	if o.Table.At.IsZero() {
		b.table = table(x, x.weightsOf(o.Table))
	}
	var err error
	if b.jobTables, err = x.jobs(o); err != nil {
		return err
	}
	up := expertParams{wRows: uint32(b.inner), wCols: uint32(b.dim), divide: uint32(o.TopK), xStride: uint32(b.dim), yStride: uint32(2 * b.inner),
		limit: o.Clamp.Limit, alpha: o.Clamp.Alpha}
	if gated := first.Gate.Format == first.Up.Format && b.wide[whichGate] == b.wide[whichUp]; gated && x.limbs(first.Gate.Format) {
		x.limbExperts(&b, whichGate, true, first.Gate.Format, limbRows{x: o.X, rows: o.Rows, stride: b.dim}, o.Scratch, up)
	} else if gated {
		s := shapeOf(first.Gate.Format)
		x.begin(o, "experts_gate_up", s.coding, s.layout, flag(b.wide[whichGate]), b.xrows, b.biased, b.clamped)
		x.expertProduct(&b, s, o.X, o.Scratch, up)
	} else {
		x.expertOne(&b, whichGate, first.Gate.Format, o.X, o.Scratch, up)
		x.expertOne(&b, whichUp, first.Up.Format, o.X, o.Scratch.Floats(b.inner), up)
		s, n := shapeOf(first.Gate.Format), o.Rows*o.TopK*b.inner
		x.begin(o, "experts_swiglu", s.coding, s.layout, 1, b.clamped)
		x.views(o.Scratch)
		constants(x, expertGateParams{n: uint32(n), inner: uint32(b.inner), limit: o.Clamp.Limit, alpha: o.Clamp.Alpha})
		x.elements(n)
	}
	x.expertOne(&b, whichDown, first.Down.Format, o.Scratch, o.Y, expertParams{wRows: uint32(b.dim), wCols: uint32(b.inner), divide: 1,
		xStride: uint32(2 * b.inner), yStride: uint32(b.dim)})
	return nil
}

// wideMatrices reports which of the matrices vectors can be loaded from, in all experts of a table.
func wideMatrices(t *gpu.ExpertTable) (wide [3]bool) {
	wide = [3]bool{true, true, true}
	for i := range t.Experts {
		one := wideExpert(&t.Experts[i])
		for which := range wide {
			wide[which] = wide[which] && one[which]
		}
	}
	return wide
}

// wideExpert is wideMatrices for one expert.
func wideExpert(e *gpu.Expert) (wide [3]bool) {
	for which, m := range [3]*gpu.Matrix{whichGate: &e.Gate, whichUp: &e.Up, whichDown: &e.Down} {
		wide[which] = shapeOf(m.Format).wideMatrix(m)
	}
	return wide
}

// wideOf returns what a table on the device has kept of wideMatrices.
func wideOf(t *gpu.ExpertTable) [3]bool {
	if wide, ok := t.Kept.([3]bool); ok {
		return wide
	}
	return wideMatrices(t)
}

// wideExperts reports for which of the matrices vectors can be loaded, from all experts and from
// their inputs.
func wideExperts(o *gpu.Experts) [3]bool {
	wide := wideOf(o.Table)
	first := &o.Table.Experts[0]
	x := first.Gate.Cols%4 == 0 && aligned(16, o.X)
	wide[whichGate], wide[whichUp] = wide[whichGate] && x, wide[whichUp] && x
	wide[whichDown] = wide[whichDown] && 2*first.Gate.Rows%4 == 0 && aligned(16, o.Scratch)
	return wide
}

func (x *encoder) expertOne(b *expertBatch, which int, f quant.Format, in, out gpu.View, p expertParams) {
	if x.limbs(f) {
		rows := b.o.Rows
		if p.divide == 1 { // a row a pair
			rows *= b.o.TopK
		}
		x.limbExperts(b, which, false, f, limbRows{x: in, rows: rows, stride: int(p.xStride)}, out, p)
		return
	}
	s := shapeOf(f)
	x.begin(b.o, "experts_product", s.coding, s.layout, flag(b.wide[which]), b.xrows, b.biased, which)
	x.expertProduct(b, s, in, out, p)
}

// expertLists binds an operation's table of experts, jobs and pairs.
func (x *encoder) expertLists(b *expertBatch) {
	if at := b.o.Table.At; at.IsZero() {
		x.tableAt(b.table)
	} else {
		x.views(at)
	}
	x.jobsOf(b.jobTables)
}

// expertProduct binds what the product kernels have in common.
func (x *encoder) expertProduct(b *expertBatch, s shape, in, out gpu.View, p expertParams) {
	x.expertLists(b)
	x.views(in, out)
	p.groupBits = s.groupBits
	constants(x, p)
	x.end(32*s.simdgroups(int(p.wCols)), ceil(int(p.wRows), s.tile), b.n)
}
