package host

import (
	"github.com/moeflux/moeflux-actor/gpu"
)

const (
	sumInputs = 32 // inputs in one of a rowList's sums: the smallest quantisation group
	tileRows  = 4  // rows of W unpacked at a time: two rows of X stay in the first cache meanwhile
	splitRows = 64 // rows of X in a chunk, at least, where W has too few rows for all threads
)

// rowList is rows of float32 in memory, and for each the sums of its blocks of 32 inputs, which affine matrices
// multiply by their biases.
type rowList struct {
	data          []float32
	stride        int
	sums          []float32 // nil if no matrix needs them
	sumStride, at int       // row r's sums begin at r·sumStride + at
	list          []int32   // rows taken; nil means 0, 1, …
	div           int       // if not 0, list holds div times the row, plus something
}

// row returns the place of row i of the list.
func (l *rowList) row(i int) int {
	if l.list == nil {
		return i
	}
	if l.div != 0 {
		return int(l.list[i]) / l.div
	}
	return int(l.list[i])
}

// inputs returns row i, of cols elements, and its sums.
func (l *rowList) inputs(i, cols int) (x, sums []float32) {
	r := l.row(i)
	x = l.data[r*l.stride : r*l.stride+cols]
	if l.sums != nil {
		sums = l.sums[r*l.sumStride+l.at:][:cols/sumInputs]
	}
	return x, sums
}

// mulRows computes out[i, o] = W[o]·in[i] for rows i0 ≤ i < i1 and o0 ≤ o < o1; out's row begins at W's row 0.
// A single row of X multiplies packed weights; for more of them a few rows of W are unpacked once for all.
func (k *kernels) mulRows(s *scratch, w *matrix, o0, o1 int, in, out *rowList, i0, i1 int) {
	if i1-i0 == 1 {
		x, sums := in.inputs(i0, w.cols)
		y := out.data[out.row(i0)*out.stride:]
		for o := o0; o < o1; o++ {
			scales, biases := w.groups(o)
			y[o] = k.one(w.row(o), scales, biases, w.format, x, sums)
		}
		return
	}
	block := w.block()
	q := grow(&s.a, tileRows*w.cols)
	for t0 := o0; t0 < o1; t0 += tileRows {
		t1 := min(t0+tileRows, o1)
		for o := t0; o < t1; o++ {
			k.unpack(q[(o-t0)*w.cols:][:w.cols], w.row(o), w.format)
		}
		i := i0
		for ; i+2 <= i1; i += 2 {
			x0, sums0 := in.inputs(i, w.cols)
			x1, sums1 := in.inputs(i+1, w.cols)
			y0, y1 := out.data[out.row(i)*out.stride:], out.data[out.row(i+1)*out.stride:]
			for o := t0; o < t1; o++ {
				scales, biases := w.groups(o)
				y0[o], y1[o] = k.two(q[(o-t0)*w.cols:][:w.cols], scales, biases, block, x0, sums0, x1, sums1)
			}
		}
		if i < i1 {
			x, sums := in.inputs(i, w.cols)
			y := out.data[out.row(i)*out.stride:]
			for o := t0; o < t1; o++ {
				scales, biases := w.groups(o)
				y[o] = k.last(q[(o-t0)*w.cols:][:w.cols], scales, biases, block, x, sums)
			}
		}
	}
}

// matTask is a matrix product; a chunk is some rows of W times some rows of X.
type matTask struct {
	kernels   *kernels
	w         matrix
	in, out   rowList
	rows      int
	perW      int // rows of W in a chunk
	perX      int // rows of X in a chunk
	chunksOfW int
	bias      []float32 // [rows of W], or nil
}

func (t *matTask) do(s *scratch, chunk int) {
	o := chunk % t.chunksOfW * t.perW
	i := chunk / t.chunksOfW * t.perX
	oEnd, iEnd := min(o+t.perW, t.w.rows), min(i+t.perX, t.rows)
	t.kernels.mulRows(s, &t.w, o, oEnd, &t.in, &t.out, i, iEnd)
	if t.bias == nil {
		return
	}
	for ; i < iEnd; i++ {
		y := t.out.data[t.out.row(i)*t.out.stride:]
		for c := o; c < oEnd; c++ {
			y[c] += t.bias[c]
		}
	}
}

func (x *executor) runMatMul(o *gpu.MatMul) {
	t := &x.mat
	*t = matTask{kernels: x.kernels, w: matrixOf(&o.W), rows: o.Rows}
	stride := or(o.XStride, o.W.Cols)
	t.in = rowList{data: floatsAt(o.X, (o.Rows-1)*stride+o.W.Cols), stride: stride}
	if t.w.affine() {
		x.sumRows(&t.in, o.Rows, o.W.Cols)
	}
	stride = or(o.YStride, o.W.Rows)
	t.out = rowList{data: floatsAt(o.Y, (o.Rows-1)*stride+o.W.Rows), stride: stride}

	if !o.Bias.IsZero() {
		t.bias = floatsAt(o.Bias, o.W.Rows)
	}
	t.perW, t.perX = x.width(o.W.Rows, tileRows), o.Rows
	t.chunksOfW = chunks(o.W.Rows, t.perW)
	if t.chunksOfW <= len(x.pool.workers) {
		t.perX = max(splitRows, x.width(o.Rows, 2))
	}
	x.parallel(t, t.chunksOfW*chunks(o.Rows, t.perX), o.Rows*o.W.Rows*o.W.Cols/2)
	*t = matTask{}
}

// sumTask fills a rowList's sums.
type sumTask struct {
	rows             rowList
	count, cols, per int
}

func (t *sumTask) do(_ *scratch, chunk int) {
	for i := chunk * t.per; i < min((chunk+1)*t.per, t.count); i++ {
		x, sums := t.rows.inputs(i, t.cols)
		for b := range sums {
			sums[b] = sumUp(x[b*sumInputs : (b+1)*sumInputs])
		}
	}
}

// sumRows gives l, a list of all rows of cols inputs, its sums, in x's memory.
func (x *executor) sumRows(l *rowList, rows, cols int) {
	l.sumStride = cols / sumInputs
	l.sums = grow(&x.sums, rows*l.sumStride)
	x.fillSums(l, rows, cols)
}

func (x *executor) fillSums(l *rowList, rows, cols int) {
	t := &x.summing
	*t = sumTask{rows: *l, count: rows, cols: cols, per: x.width(rows, 1)}
	x.parallel(t, chunks(rows, t.per), rows*cols/2)
	*t = sumTask{}
}
