package host

import "github.com/moeflux/moeflux-actor/gpu"

// expertTask runs all experts of one operation in two phases, over chunks of rows of each expert's matrices. In
// Scratch a pair has the gate's results, which become silu(gate)·up, then the up projection's; in between the
// second half takes the sums of the first, if Down is affine.
type expertTask struct {
	kernels    *kernels
	experts    []gpu.Expert
	in         rowList // X
	hidden, up rowList // halves of Scratch
	y          rowList
	topK       int
	down       bool // the phase
	rows       int  // of the phase's matrices
	per        int  // rows in a chunk
	perExpert  int  // chunks of an expert
}

func (t *expertTask) do(s *scratch, chunk int) {
	e := &t.experts[chunk/t.perExpert]
	o := chunk % t.perExpert * t.per
	end := min(o+t.per, t.rows)
	if t.down {
		w := matrixOf(&e.Down)
		in, out := t.hidden, t.y
		in.list, out.list = e.Pairs, e.Pairs
		t.kernels.mulRows(s, &w, o, end, &in, &out, 0, len(e.Pairs))
		return
	}
	in, gate, up := t.in, t.hidden, t.up
	in.list, in.div, gate.list, up.list = e.Pairs, t.topK, e.Pairs, e.Pairs
	w := matrixOf(&e.Gate)
	t.kernels.mulRows(s, &w, o, end, &in, &gate, 0, len(e.Pairs))
	w = matrixOf(&e.Up)
	t.kernels.mulRows(s, &w, o, end, &in, &up, 0, len(e.Pairs))
	for i := range e.Pairs {
		g := gate.data[gate.row(i)*gate.stride:][o:end]
		u := up.data[up.row(i)*up.stride:][o:end]
		swiglu(g, g, u)
	}
}

func (t *expertTask) phase(x *executor, down bool, rows int) (chunkCount int) {
	t.down, t.rows = down, rows
	// Enough chunks over all experts, and never less than a tile in one.
	want := max(1, x.spread()/len(t.experts))
	t.per = (rows/want + tileRows - 1) / tileRows * tileRows
	t.per = max(t.per, tileRows)
	t.perExpert = chunks(rows, t.per)
	return t.perExpert * len(t.experts)
}

func (x *executor) runExperts(o *gpu.Experts) {
	inner, dim := o.Experts[0].Gate.Rows, o.Experts[0].Gate.Cols
	pairs := o.Rows * o.TopK
	memory := floatsAt(o.Scratch, pairs*2*inner)
	t := &x.expert
	*t = expertTask{kernels: x.kernels, experts: o.Experts, topK: o.TopK}
	t.in = rowList{data: floatsAt(o.X, o.Rows*dim), stride: dim}
	t.hidden = rowList{data: memory, stride: 2 * inner}
	t.up = rowList{data: memory[inner:], stride: 2 * inner}
	t.y = rowList{data: floatsAt(o.Y, pairs*dim), stride: dim}

	work, sumIn, sumHidden := 0, false, false
	for i := range o.Experts {
		e := &o.Experts[i]
		work += len(e.Pairs) * inner * dim
		sumIn = sumIn || e.Gate.Format.ScaleBytes(1, dim)+e.Up.Format.ScaleBytes(1, dim) > 0
		sumHidden = sumHidden || e.Down.Format.ScaleBytes(1, inner) > 0
	}
	if sumIn {
		x.sumRows(&t.in, o.Rows, dim)
	}
	x.parallel(t, t.phase(x, false, inner), work)
	if sumHidden {
		t.hidden.sums, t.hidden.sumStride, t.hidden.at = memory, 2*inner, inner
		for i := range o.Experts {
			l := t.hidden
			l.list = o.Experts[i].Pairs
			x.fillSums(&l, len(l.list), inner)
		}
	}
	x.parallel(t, t.phase(x, true, dim), work/2)
	*t = expertTask{}
}
