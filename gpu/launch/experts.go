package launch

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

type expertMatrix struct{ codes, scales, biases uint64 }

type expertWeights struct{ gate, up, down expertMatrix }

type expertJob struct{ expert, first, count, _ uint32 }

type expertParams struct{ wRows, wCols, divide, xStride, yStride, groupBits uint32 }

type expertGateParams struct{ n, inner uint32 }

// expertFormats are what tells apart launches of one operation's experts.
type expertFormats struct {
	gate, up, down quant.Format
	wide           [3]bool // gate, up, down
}

// The values of WHICH.
const (
	whichGate = iota
	whichUp
	whichDown
)

func expertMatrixOf(m *gpu.Matrix) (e expertMatrix) {
	e.codes = address(m.Weight)
	if !m.Scales.IsZero() {
		e.scales, e.biases = address(m.Scales), address(m.Biases)
	}
	return e
}

// expertBatch is experts of one operation whose formats are the same.
type expertBatch struct {
	o                    *gpu.Experts
	formats              expertFormats
	experts, jobs, pairs int // where their tables are
	njobs, npairs        int
	xrows, inner, dim    int
}

// experts runs all experts at once, or all of the same formats where they differ.
func (x *encoder) experts(o *gpu.Experts) {
	x.lists.formats = x.lists.formats[:0]
	for i := range o.Experts {
		f := formatsOf(o, &o.Experts[i])
		known := false
		for _, g := range x.lists.formats {
			known = known || f == g
		}
		if !known {
			x.lists.formats = append(x.lists.formats, f)
			x.expertBatch(x.batch(o, f))
		}
	}
}

func formatsOf(o *gpu.Experts, e *gpu.Expert) expertFormats {
	gate, up, down := shapeOf(e.Gate.Format), shapeOf(e.Up.Format), shapeOf(e.Down.Format)
	return expertFormats{e.Gate.Format, e.Up.Format, e.Down.Format, [3]bool{
		gate.wide(&e.Gate, o.X, e.Gate.Cols), up.wide(&e.Up, o.X, e.Up.Cols), down.wide(&e.Down, o.Scratch, 2*e.Gate.Rows)}}
}

// batch puts the experts of formats f into the tables.
func (x *encoder) batch(o *gpu.Experts, f expertFormats) *expertBatch {
	b := &x.lists.batch
	*b = expertBatch{o: o, formats: f, inner: o.Experts[0].Gate.Rows, dim: o.Experts[0].Gate.Cols, xrows: 1}
	l := &x.lists
	l.experts, l.jobs, l.numbers = l.experts[:0], l.jobs[:0], l.numbers[:0]
	most, pairs, n := 0, 0, 0
	for i := range o.Experts {
		if e := &o.Experts[i]; formatsOf(o, e) == f {
			most, pairs, n = max(most, len(e.Pairs)), pairs+len(e.Pairs), n+1
		}
	}
	b.xrows = vectors(most)
	if x.limbs(f.gate) && x.limbs(f.up) && x.limbs(f.down) && pairs > limbFew*n {
		b.xrows = limbManyRows
	}
	for i := range o.Experts {
		e := &o.Experts[i]
		if formatsOf(o, e) != f {
			continue
		}
		for first := 0; first < len(e.Pairs); first += b.xrows {
			l.jobs = append(l.jobs, expertJob{expert: uint32(len(l.experts)), first: uint32(len(l.numbers) + first),
				count: uint32(min(b.xrows, len(e.Pairs)-first))})
		}
		for _, p := range e.Pairs {
			l.numbers = append(l.numbers, uint32(p))
		}
		l.experts = append(l.experts, expertWeights{expertMatrixOf(&e.Gate), expertMatrixOf(&e.Up), expertMatrixOf(&e.Down)})
	}
	b.njobs, b.npairs = len(l.jobs), len(l.numbers)
	b.experts, b.jobs, b.pairs = table(x, l.experts), table(x, l.jobs), table(x, l.numbers)
	return b
}

// expertBatch launches gates and ups, then downs. The gated inputs of downs lie where Scratch has a pair's first half.
func (x *encoder) expertBatch(b *expertBatch) {
	o, f := b.o, &b.formats
	up := expertParams{wRows: uint32(b.inner), wCols: uint32(b.dim), divide: uint32(o.TopK), xStride: uint32(b.dim), yStride: uint32(2 * b.inner)}
	if gated := f.gate == f.up && f.wide[whichGate] == f.wide[whichUp]; gated && x.limbs(f.gate) {
		x.limbExperts(b, whichGate, true, f.gate, f.wide[whichGate], limbRows{x: o.X, rows: o.Rows, stride: b.dim}, o.Scratch, up)
	} else if gated {
		s := shapeOf(f.gate)
		x.begin(o, "experts_gate_up", s.bits, s.layout, flag(f.wide[whichGate]), b.xrows)
		x.expertProduct(b, s, o.X, o.Scratch, up)
	} else {
		x.expertOne(b, whichGate, f.gate, o.X, o.Scratch, up)
		x.expertOne(b, whichUp, f.up, o.X, o.Scratch.Floats(b.inner), up)
		s := shapeOf(f.gate)
		x.begin(o, "experts_swiglu", s.bits, s.layout, 1)
		x.tableAt(b.pairs)
		x.views(o.Scratch)
		constants(x, expertGateParams{uint32(b.npairs * b.inner), uint32(b.inner)})
		x.elements(b.npairs * b.inner)
	}
	x.expertOne(b, whichDown, f.down, o.Scratch, o.Y, expertParams{wRows: uint32(b.dim), wCols: uint32(b.inner), divide: 1,
		xStride: uint32(2 * b.inner), yStride: uint32(b.dim)})
}

func (x *encoder) expertOne(b *expertBatch, which int, f quant.Format, in, out gpu.View, p expertParams) {
	if x.limbs(f) {
		rows := b.o.Rows
		if p.divide == 1 { // a row a pair
			rows *= b.o.TopK
		}
		x.limbExperts(b, which, false, f, b.formats.wide[which], limbRows{x: in, rows: rows, stride: int(p.xStride)}, out, p)
		return
	}
	s := shapeOf(f)
	x.begin(b.o, "experts_product", s.bits, s.layout, flag(b.formats.wide[which]), b.xrows, which)
	x.expertProduct(b, s, in, out, p)
}

// expertProduct binds what the product kernels have in common.
func (x *encoder) expertProduct(b *expertBatch, s shape, in, out gpu.View, p expertParams) {
	x.tableAt(b.experts)
	x.tableAt(b.jobs)
	x.tableAt(b.pairs)
	x.views(in, out)
	p.groupBits = s.groupBits
	constants(x, p)
	x.end(32*s.simdgroups(int(p.wCols)), ceil(int(p.wRows), s.tile), b.njobs)
}
