package host

import "github.com/moeflux/moeflux-actor/gpu"

type ropeTask struct {
	x, table              []float32
	rows, heads, rotary   int
	rowStride, headStride int
	interleaved           bool
	per                   int // rows in a chunk
}

func (t *ropeTask) do(_ *scratch, chunk int) {
	for r := chunk * t.per; r < min((chunk+1)*t.per, t.rows); r++ {
		table := t.table[r*t.rotary:][:t.rotary]
		for h := range t.heads {
			x := t.x[r*t.rowStride+h*t.headStride:][:t.rotary]
			if t.interleaved {
				rotate(x, x[1:], 2, table)
			} else {
				rotate(x, x[t.rotary/2:], 1, table)
			}
		}
	}
}

// rotate turns the pairs (a[i·step], b[i·step]) by the angles whose cosine and sine table holds.
func rotate(a, b []float32, step int, table []float32) {
	for i := 0; 2*i < len(table); i++ {
		cos, sin := table[2*i], table[2*i+1]
		u, v := a[i*step], b[i*step]
		a[i*step] = float32(u*cos) - float32(v*sin)
		b[i*step] = float32(u*sin) + float32(v*cos)
	}
}

func (x *executor) runRope(o *gpu.Rope) {
	t := &x.rope
	*t = ropeTask{rows: o.Rows, heads: o.Heads, rotary: o.Rotary, rowStride: o.RowStride, headStride: o.HeadStride,
		interleaved: o.Interleaved, per: x.width(o.Rows, 1)}
	t.x = floatsAt(o.X, (o.Rows-1)*o.RowStride+(o.Heads-1)*o.HeadStride+o.Rotary)
	t.table = floatsAt(o.Table, o.Rows*o.Rotary)
	x.parallel(t, chunks(o.Rows, t.per), o.Rows*o.Heads*o.Rotary)
	*t = ropeTask{}
}
