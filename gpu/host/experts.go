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

// phase cuts the matrices of a phase into chunks; it returns their number and the time they take in nanoseconds.
func (t *expertTask) phase(x *executor, down bool) (count, total int) {
	t.down, t.cuts = down, t.cuts[:0]
	cost := func(e *gpu.Expert) (w matrix, ns int) {
		if down {
			w = matrixOf(&e.Down)
			return w, t.kernels.nanoseconds(&w, len(e.Pairs))
		}
		w = matrixOf(&e.Gate)
		return w, 2 * t.kernels.nanoseconds(&w, len(e.Pairs))
	}
	for i := range t.experts {
		_, ns := cost(&t.experts[i])
		total += ns
	}
	for i := range t.experts {
		w, ns := cost(&t.experts[i])
		c := cutRows(&w, 2*x.spread()*ns/max(total, 1), count, 0)
		t.cuts = append(t.cuts, c)
		count += c.count
	}
	return count, total
}

// wanted adds the groups that m's inputs are rounded in.
func (t *expertTask) wanted(groups *[3]bool, m *gpu.Matrix) {
	if g := m.Format.Group; t.rounds && m.Format.ScaleBytes(1, m.Cols) > 0 {
		groups[groupAt(g)] = true
	}
}

func (x *executor) runExperts(o *gpu.Experts) {
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
	count, ns := t.phase(x, false)
	x.parallel(t, count, ns)
	if hidden != [3]bool{} {
		l := t.hidden
		l.list = x.pairs
		x.round(&x.hiddens, &l, len(x.pairs), pairs, inner, hidden)
	}
	count, ns = t.phase(x, true)
	x.parallel(t, count, ns)
	*t = expertTask{cuts: t.cuts}
}
