package host

import "github.com/moeflux/moeflux-actor/gpu"

// headMatTask multiplies each head's vectors by its block of one matrix; a chunk is one head, or
// some of its outputs where there are few heads for the threads.
type headMatTask struct {
	*vectors
	w                        matrix
	x, y                     []float32
	rows, in, out, parts     int
	headRows, first          int
	transposed               bool
	xRow, xHead, yRow, yHead int
}

// headRows is how many rows of the matrix are dequantised at a time.
const headRows = 16

func (t *headMatTask) do(s *scratch, chunk int) {
	h, part := chunk/t.parts, chunk%t.parts
	if t.transposed {
		t.transposeHead(s, h)
		return
	}
	row := grow(&s.a, t.w.cols)
	for o := part * t.out / t.parts; o < (part+1)*t.out/t.parts; o++ {
		t.row(row, &t.w, h*t.headRows+t.first+o)
		for r := range t.rows {
			t.y[r*t.yRow+h*t.yHead+o] = t.dot(row, t.x[r*t.xRow+h*t.xHead:][:t.in])
		}
	}
}

// transposeHead adds up the rows of the block in ascending order, each times its input.
func (t *headMatTask) transposeHead(s *scratch, h int) {
	w := grow(&s.a, headRows*t.w.cols)
	for i := 0; i < t.in; i += headRows {
		n := min(headRows, t.in-i)
		for j := range n {
			t.row(w[j*t.w.cols:(j+1)*t.w.cols], &t.w, h*t.headRows+t.first+i+j)
		}
		t.multiply(t.y[h*t.yHead:], t.x[h*t.xHead+i:], w, t.yRow, t.xRow, t.w.cols, t.rows, n, t.out, i > 0)
	}
}

func (x *executor) runHeadMatMul(o *gpu.HeadMatMul) {
	t := &x.headMat
	*t = headMatTask{
		vectors: x.vectors, w: matrixOf(&o.W), rows: o.Rows, in: o.In, out: o.Out, parts: 1, headRows: o.HeadRows, first: o.FirstRow, transposed: o.Transposed,
		xRow: o.XRowStride, xHead: o.XHeadStride, yRow: o.YRowStride, yHead: o.YHeadStride,
	}
	t.x = floatsAt(o.X, (o.Rows-1)*o.XRowStride+(o.Heads-1)*o.XHeadStride+o.In)
	t.y = floatsAt(o.Y, (o.Rows-1)*o.YRowStride+(o.Heads-1)*o.YHeadStride+o.Out)
	if !o.Transposed && o.Heads < 2*x.threads { // the other way each part would widen all weights
		t.parts = min(o.Out, chunks(2*x.threads, o.Heads))
	}
	x.parallel(t, o.Heads*t.parts, x.vectors.multiplying(o.Heads*o.In*o.Out*(4+o.Rows)))
	*t = headMatTask{}
}
