package host

import "github.com/moeflux/moeflux-actor/gpu"

// expertTask runs all experts of one operation in two phases, over chunks of rows of each expert's matrices. In
// Scratch a pair has the gate's results, which become silu(gate)·up, then the up projection's.
type expertTask struct {
	kernels    *kernels
	vectors    *vectors
	experts    []gpu.Expert
	cuts       []cut // of each expert, in the phase
	rounds     bool
	x          rowList
	inputs     *rounded // of X and of hidden
	hiddens    *rounded
	hidden, up rowList // halves of Scratch
	y          rowList
	topK       int
	down       bool // the phase
}

func (t *expertTask) do(s *scratch, chunk int) {
	e := len(t.cuts) - 1
	for t.cuts[e].first > chunk {
		e--
	}
	expert, c := &t.experts[e], &t.cuts[e]
	o := (chunk - c.first) * c.per
	if t.down {
		w := matrixOf(&expert.Down)
		in, out := t.input(&w, &t.hidden, t.hiddens), t.y
		in.list, out.list = expert.Pairs, expert.Pairs
		t.kernels.multiply(s, &w, o, min(o+c.per, w.rows), &in, &out, 0, len(expert.Pairs))
		return
	}
	gate, up := t.hidden, t.up
	gate.list, up.list = expert.Pairs, expert.Pairs
	end := min(o+c.per, expert.Gate.Rows)
	for _, half := range []struct {
		m   *gpu.Matrix
		out *rowList
	}{{&expert.Gate, &gate}, {&expert.Up, &up}} {
		w := matrixOf(half.m)
		in := t.input(&w, &t.x, t.inputs)
		in.list, in.div = expert.Pairs, t.topK
		t.kernels.multiply(s, &w, o, end, &in, half.out, 0, len(expert.Pairs))
	}
	for i := range expert.Pairs {
		g, u := gate.floats(i)[o:end], up.floats(i)[o:end]
		t.vectors.swiglu(g, g, u)
	}
}

// input returns the rows that w multiplies: as they are, or rounded.
func (t *expertTask) input(w *matrix, exact *rowList, r *rounded) rowList {
	if t.rounds && w.affine() {
		return r.rows(w.format.Group)
	}
	return *exact
}

// phase runs one of the two phases.
func (t *expertTask) phase(x *executor, down bool) {
	var count, total int
	t.down = down
	t.cuts, count, total = t.kernels.cutExperts(t.cuts, t.experts, down, x.pool.spread())
	x.parallel(t, count, total)
}

// cutExperts cuts the matrices of a phase into about twice spread chunks and returns the cuts, in the memory of cuts, the number of
// chunks and the time they take in nanoseconds.
func (k *kernels) cutExperts(cuts []cut, experts []gpu.Expert, down bool, spread int) (_ []cut, count, total int) {
	cost := func(e *gpu.Expert) (w matrix, ns int) {
		if down {
			w = shapeOf(&e.Down)
			return w, k.nanoseconds(&w, len(e.Pairs))
		}
		w = shapeOf(&e.Gate)
		return w, 2 * k.nanoseconds(&w, len(e.Pairs))
	}
	for i := range experts {
		_, ns := cost(&experts[i])
		total += ns
	}
	cuts = cuts[:0]
	for i := range experts {
		w, ns := cost(&experts[i])
		c := cutRows(&w, 2*spread*ns/max(total, 1), count, 0)
		cuts = append(cuts, c)
		count += c.count
	}
	return cuts, count, total
}

// wanted adds the groups that m's inputs are rounded in.
func (t *expertTask) wanted(groups *[3]bool, m *gpu.Matrix) {
	if g := m.Format.Group; t.rounds && m.Format.ScaleBytes(1, m.Cols) > 0 {
		groups[groupAt(g)] = true
	}
}

// runExperts runs o; rest are the operations behind it.
func (x *executor) runExperts(o *gpu.Experts, rest []gpu.Op) {
	inner, dim := o.Experts[0].Gate.Rows, o.Experts[0].Gate.Cols
	pairs := o.Rows * o.TopK
	t := &x.expert
	*t = expertTask{kernels: x.kernels, vectors: x.vectors, experts: o.Experts, cuts: t.cuts, topK: o.TopK, rounds: x.rounds, inputs: &x.inputs, hiddens: &x.hiddens}
	t.x = floatRows(o.X, o.Rows, dim, dim)
	t.hidden = floatRows(o.Scratch, pairs, inner, 2*inner)
	t.up = floatRows(gpu.View{Buf: o.Scratch.Buf, Offset: o.Scratch.Offset + 4*inner}, pairs, inner, 2*inner)
	t.y = floatRows(o.Y, pairs, dim, dim)

	var in, hidden [3]bool
	x.pairs = x.pairs[:0]
	for i := range o.Experts {
		e := &o.Experts[i]
		t.wanted(&in, &e.Gate)
		t.wanted(&in, &e.Up)
		t.wanted(&hidden, &e.Down)
		x.pairs = append(x.pairs, e.Pairs...)
	}
	if in != [3]bool{} {
		x.round(&x.inputs, &t.x, o.Rows, o.Rows, dim, in)
	}
	x.planner.experts(o, true)
	t.phase(x, false)
	if hidden != [3]bool{} {
		l := t.hidden
		l.list = x.pairs
		x.round(&x.hiddens, &l, len(x.pairs), pairs, inner, hidden)
	}
	x.foretell(rest)
	t.phase(x, true)
	*t = expertTask{cuts: t.cuts}
}
