package host

import "github.com/moeflux/moeflux-actor/gpu"

type ropeTask struct {
	*vectors
	x, table              []float32
	rows, heads, rotary   int
	rowStride, headStride int
	interleaved           bool
	per                   int // rows in a chunk
}

func (t *ropeTask) do(_ *scratch, chunk int) {
	for r := chunk * t.per; r < min((chunk+1)*t.per, t.rows); r++ {
		table := t.table[r*t.rotary:][:t.rotary]
		x := t.x[r*t.rowStride:]
		switch {
		case t.interleaved && t.rotary%t.lanes == 0:
			t.ropePairs(x, table, t.heads, t.headStride)
		case !t.interleaved && t.rotary/2%t.lanes == 0:
			t.rope(x, table, t.heads, t.headStride)
		default:
			rotateHeads(x, table, t.heads, t.headStride, t.interleaved)
		}
	}
}

func (x *executor) runRope(o *gpu.Rope) {
	t := &x.rope
	*t = ropeTask{vectors: x.vectors, rows: o.Rows, heads: o.Heads, rotary: o.Rotary, rowStride: o.RowStride, headStride: o.HeadStride,
		interleaved: o.Interleaved, per: x.width(o.Rows, 1)}
	t.x = floatsAt(o.X, (o.Rows-1)*o.RowStride+(o.Heads-1)*o.HeadStride+o.Rotary)
	t.table = floatsAt(o.Table, o.Rows*o.Rotary)
	x.parallel(t, chunks(o.Rows, t.per), 2*x.vectors.moving(o.Rows*o.Heads*o.Rotary))
	*t = ropeTask{}
}
