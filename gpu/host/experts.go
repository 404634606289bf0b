package host

import (
	"slices"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
)

// expertTask runs all experts of one operation in two phases, over chunks of rows of each expert's
// matrices. Scratch holds two rows for each pair: the gate's results, which become silu(gate)·up,
// and the up projection's.
type expertTask struct {
	kernels    *kernels
	vectors    *vectors
	uses       []expertUse
	clamp      gpu.Clamp
	cuts       []cut // of each use, in the phase
	downs      []cut // of each use, in the second phase
	rounds     bool
	x          rowList
	inputs     *rounded // of X and of hidden
	hiddens    *rounded
	hidden, up rowList // halves of Scratch
	y          rowList
	topK       int
	down       bool // the phase
}

// expertUse is an expert and the pairs that use it.
type expertUse struct {
	*gpu.Expert
	pairs []int32 // row·TopK + pick, ascending
}

func (t *expertTask) do(s *scratch, chunk int) {
	e := len(t.cuts) - 1
	for t.cuts[e].first > chunk {
		e--
	}
	expert, c := &t.uses[e], &t.cuts[e]
	o := (chunk - c.first) * c.per
	if t.down {
		w := matrixOf(&expert.Down)
		in, out := t.input(&w, &t.hidden, t.hiddens), t.y
		in.list, out.list = expert.pairs, expert.pairs
		end := min(o+c.per, w.rows)
		t.kernels.multiply(s, &w, o, end, &in, &out, 0, len(expert.pairs))
		t.addBias(expert.DownBias, &out, o, end)
		return
	}
	gate, up := t.hidden, t.up
	gate.list, up.list = expert.pairs, expert.pairs
	end := min(o+c.per, expert.Gate.Rows)
	for _, half := range []struct {
		m   *gpu.Matrix
		out *rowList
	}{{&expert.Gate, &gate}, {&expert.Up, &up}} {
		w := matrixOf(half.m)
		in := t.input(&w, &t.x, t.inputs)
		in.list, in.div = expert.pairs, t.topK
		t.kernels.multiply(s, &w, o, end, &in, half.out, 0, len(expert.pairs))
	}
	t.addBias(expert.GateBias, &gate, o, end)
	t.addBias(expert.UpBias, &up, o, end)
	for i := range expert.pairs {
		g, u := gate.floats(i)[o:end], up.floats(i)[o:end]
		switch {
		case t.clamp.Limit == 0:
			t.vectors.swiglu(g, g, u)
		case t.clamp.Alpha == 0:
			bounded(t.clamp, g, g, u)
		default:
			bound(t.clamp, g, u)
			t.vectors.swiglu(g, g, u)
		}
	}
}

// addBias adds a bias, if there is one, to the columns o to end-1 of rows.
func (t *expertTask) addBias(bias gpu.View, rows *rowList, o, end int) {
	if bias.IsZero() {
		return
	}
	b := floatsAt(bias, end)[o:]
	for i := range rows.list {
		y := rows.floats(i)[o:end]
		t.vectors.add(y, y, b)
	}
}

// bound makes of gates and ups the numbers of which swiglu is what gpu.Clamp says with an Alpha:
// silu(αg)·(u+1)/α is g·σ(αg)·(u+1).
func bound(c gpu.Clamp, gate, up []float32) {
	for i, g := range gate {
		gate[i] = c.Alpha * min(g, c.Limit)
	}
	for i, u := range up {
		up[i] = (min(max(u, -c.Limit), c.Limit) + 1) / c.Alpha
	}
}

// input returns the rows that w multiplies: exact or rounded.
func (t *expertTask) input(w *matrix, exact *rowList, r *rounded) rowList {
	if n := w.format.Rounded(); t.rounds && n > 0 {
		return r.rows(n)
	}
	return *exact
}

// phase divides the matrices of a phase into chunks. It returns their number and how many
// nanoseconds they take.
func (t *expertTask) phase(x *executor, down bool) (count, total int) {
	cuts := &t.cuts
	if down {
		cuts = &t.downs
	}
	*cuts = (*cuts)[:0]
	cost := func(e *expertUse) (w matrix, ns int) {
		if down {
			w = matrixOf(&e.Down)
			return w, t.kernels.nanoseconds(&w, len(e.pairs))
		}
		w = matrixOf(&e.Gate)
		return w, 2 * t.kernels.nanoseconds(&w, len(e.pairs))
	}
	for i := range t.uses {
		_, ns := cost(&t.uses[i])
		total += ns
	}
	for i := range t.uses {
		w, ns := cost(&t.uses[i])
		c := cutRows(&w, t.kernels.unit(len(t.uses[i].pairs)), pieces(ns, 2*x.spread()*ns/max(total, 1)), count, 0)
		*cuts = append(*cuts, c)
		count += c.count
	}
	return count, total
}

// firstDowns returns what each thread reads first in the second phase, which has count chunks.
func (t *expertTask) firstDowns(x *executor, count int) []stretch {
	x.downs = slices.Grow(x.downs[:0], x.threads)[:x.threads]
	e := 0
	for i := range x.downs {
		chunk, end := i*count/x.threads, (i+1)*count/x.threads
		for e+1 < len(t.downs) && t.downs[e+1].first <= chunk {
			e++
		}
		c, w := &t.downs[e], matrixOf(&t.uses[e].Down)
		x.downs[i] = w.stretch((chunk-c.first)*c.per, (end-c.first)*c.per)
	}
	return x.downs
}

// wanted marks the size of the groups in which m's inputs are rounded.
func (t *expertTask) wanted(groups *[groupSizes]bool, m *gpu.Matrix) {
	if n := m.Format.Rounded(); t.rounds && n > 0 {
		groups[groupAt(n)] = true
	}
}

// usesOf groups pairs by expert. It leaves out pairs whose expert is not in the table.
func (x *executor) usesOf(table []gpu.Expert, picks []int32) []expertUse {
	x.counts = slices.Grow(x.counts[:0], len(table))[:len(table)]
	clear(x.counts)
	for _, e := range picks {
		if uint32(e) < uint32(len(table)) {
			x.counts[e]++
		}
	}
	x.pairs, x.uses = slices.Grow(x.pairs[:0], len(picks))[:len(picks)], x.uses[:0]
	at := int32(0)
	for e, n := range x.counts {
		if n > 0 {
			x.uses = append(x.uses, expertUse{&table[e], x.pairs[at : at+n : at+n]})
		}
		x.counts[e] = at // where the expert's next pair goes
		at += n
	}
	for i, e := range picks {
		if uint32(e) < uint32(len(table)) {
			x.pairs[x.counts[e]] = int32(i)
			x.counts[e]++
		}
	}
	x.pairs = x.pairs[:at]
	return x.uses
}

func (x *executor) runExperts(o *gpu.Experts) {
	inner, dim := o.Table.Experts[0].Gate.Rows, o.Table.Experts[0].Gate.Cols
	pairs := o.Rows * o.TopK
	t := &x.expert
	*t = expertTask{kernels: x.kernels, vectors: x.vectors, cuts: t.cuts, downs: t.downs, topK: o.TopK, clamp: o.Clamp, rounds: x.rounds, inputs: &x.inputs, hiddens: &x.hiddens}
	t.uses = x.usesOf(expertsOf(o.Table), intsOf(&o.Picks, pairs))
	if len(t.uses) == 0 {
		return
	}
	t.x = floatRows(o.X, o.Rows, dim, dim)
	t.hidden = floatRows(o.Scratch, pairs, inner, 2*inner)
	t.up = floatRows(gpu.View{Buf: o.Scratch.Buf, Offset: o.Scratch.Offset + 4*inner}, pairs, inner, 2*inner)
	t.y = floatRows(o.Y, pairs, dim, dim)

	var in, hidden [groupSizes]bool
	first := t.uses[0] // all have the same formats
	t.wanted(&in, &first.Gate)
	t.wanted(&in, &first.Up)
	t.wanted(&hidden, &first.Down)
	if in != [groupSizes]bool{} {
		x.round(&x.inputs, &t.x, o.Rows, o.Rows, dim, in)
	}
	count, ns := t.phase(x, false)
	downCount, downNS := t.phase(x, true)
	if o.Rows <= upcomingRows {
		x.upcoming = t.firstDowns(x, downCount)
		x.follows.experts()
	}
	x.parallel(t, count, ns)
	x.upcoming = nil
	if hidden != [groupSizes]bool{} {
		l := t.hidden
		l.list = x.pairs
		x.round(&x.hiddens, &l, len(x.pairs), pairs, inner, hidden)
	}
	t.down, t.cuts, t.downs = true, t.downs, t.cuts
	x.parallel(t, downCount, downNS)
	*t = expertTask{cuts: t.cuts, downs: t.downs}
	clear(x.uses)
}

// intsOf returns the n numbers of a list.
func intsOf(l *gpu.List[int32], n int) []int32 {
	if l.At.IsZero() {
		return l.Host
	}
	return intsAt(l.At, n)
}

// intsAt returns n int32 at v.
func intsAt(v gpu.View, n int) []int32 {
	b := bytesAt(v, 4*n)
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
