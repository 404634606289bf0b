package host

import "github.com/moeflux/moeflux-actor/gpu"

// headMatTask multiplies each head's vectors by that head's block of one matrix; a chunk is one head.
type headMatTask struct {
	w                        matrix
	x, y                     []float32
	rows, in, out            int
	headRows, first          int
	transposed               bool
	xRow, xHead, yRow, yHead int
}

func (t *headMatTask) do(s *scratch, h int) {
	row := grow(&s.a, t.w.cols)
	if t.transposed {
		t.transpose(row, h)
		return
	}
	for o := range t.out {
		t.w.dequantise(row, h*t.headRows+t.first+o)
		for r := range t.rows {
			t.y[r*t.yRow+h*t.yHead+o] = dotBlocks(row, t.x[r*t.xRow+h*t.xHead:])
		}
	}
}

// transpose adds up the rows of the block, ascending, each times its input.
func (t *headMatTask) transpose(row []float32, h int) {
	for r := range t.rows {
		clear(t.y[r*t.yRow+h*t.yHead:][:t.out])
	}
	for i := range t.in {
		t.w.dequantise(row, h*t.headRows+t.first+i)
		for r := range t.rows {
			addTimes(t.y[r*t.yRow+h*t.yHead:][:t.out], t.x[r*t.xRow+h*t.xHead+i], row)
		}
	}
}

// dotBlocks returns Σ q[i]·x[i], in blocks of blockInputs.
func dotBlocks(q, x []float32) float32 {
	var sum float32
	for len(q) > blockInputs {
		sum += dot(q[:blockInputs], x)
		q, x = q[blockInputs:], x[blockInputs:]
	}
	return sum + dot(q, x)
}

// addTimes adds f·v to y.
func addTimes(y []float32, f float32, v []float32) {
	v = v[:len(y)]
	for d := range y {
		y[d] += float32(f * v[d])
	}
}

func (x *executor) runHeadMatMul(o *gpu.HeadMatMul) {
	t := &x.headMat
	*t = headMatTask{
		w: matrixOf(&o.W), rows: o.Rows, in: o.In, out: o.Out, headRows: o.HeadRows, first: o.FirstRow, transposed: o.Transposed,
		xRow: o.XRowStride, xHead: o.XHeadStride, yRow: o.YRowStride, yHead: o.YHeadStride,
	}
	t.x = floatsAt(o.X, (o.Rows-1)*o.XRowStride+(o.Heads-1)*o.XHeadStride+o.In)
	t.y = floatsAt(o.Y, (o.Rows-1)*o.YRowStride+(o.Heads-1)*o.YHeadStride+o.Out)
	x.parallel(t, o.Heads, o.Heads*o.In*o.Out*(1+o.Rows)/2)
	*t = headMatTask{}
}

func runCopyHeads(o *gpu.CopyHeads) {
	x := floatsAt(o.X, (o.Rows-1)*o.XRowStride+(o.Heads-1)*o.XHeadStride+o.Dim)
	y := floatsAt(o.Y, (o.Rows-1)*o.YRowStride+(o.Heads-1)*o.YHeadStride+o.Dim)
	for r := range o.Rows {
		for h := range o.Heads {
			copy(y[r*o.YRowStride+h*o.YHeadStride:][:o.Dim], x[r*o.XRowStride+h*o.XHeadStride:])
		}
	}
}
