package host

import "github.com/moeflux/moeflux-actor/gpu"

type embedTask struct {
	*vectors
	table  matrix
	tokens []int32
	y      []float32
	per    int // rows in a chunk
}

func (t *embedTask) do(_ *scratch, chunk int) {
	for r := chunk * t.per; r < min((chunk+1)*t.per, len(t.tokens)); r++ {
		t.row(t.y[r*t.table.cols:][:t.table.cols], &t.table, int(t.tokens[r]))
	}
}

func (x *executor) runEmbed(o *gpu.Embed) {
	n := len(o.Tokens)
	t := &x.embed
	*t = embedTask{x.vectors, matrixOf(&o.Table), o.Tokens, floatsAt(o.Y, n*o.Table.Cols), x.width(n, 1)}
	x.parallel(t, chunks(n, t.per), 2*x.vectors.moving(n*o.Table.Cols))
	*t = embedTask{}
}

func (*executor) runGather(o *gpu.Gather) {
	x, y := floatsAt(o.X, o.XRows*o.Dim), floatsAt(o.Y, len(o.Rows)*o.Dim)
	for i, r := range o.Rows {
		copy(y[i*o.Dim:][:o.Dim], x[int(r)*o.Dim:])
	}
}
