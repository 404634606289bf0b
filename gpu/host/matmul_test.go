package host

import (
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
)

// TestJoined checks that successive products share a job only if neither has to do with the other's
// outputs.
func TestJoined(t *testing.T) {
	const dim, rows = 64, 3
	d := open(t, 1)
	f := func(n int) gpu.View { return benchFloats(t, d, n) }
	w, x := benchMatrix(t, d, dim, dim, q4), f(2*rows*dim)
	plain := func(v gpu.View) gpu.Matrix { return gpu.Matrix{Rows: dim, Cols: dim, Weight: v} }
	first := gpu.MatMul{W: w, X: x, Y: f(dim * dim), Rows: rows}
	overlapping := first.Y
	overlapping.Offset += 4 * (rows*dim - 1)
	for _, c := range []struct {
		name   string
		change func(o *gpu.MatMul)
		want   int
	}{
		{"apart", func(o *gpu.MatMul) {}, 2},
		{"exact", func(o *gpu.MatMul) { o.Exact = true }, 2},
		{"another X", func(o *gpu.MatMul) { o.X.Offset += 4 }, 1},
		{"fewer rows", func(o *gpu.MatMul) { o.Rows-- }, 1},
		{"another stride", func(o *gpu.MatMul) { o.XStride = dim + 1 }, 1},
		{"the same Y", func(o *gpu.MatMul) { o.Y = first.Y }, 1},
		{"an overlapping Y", func(o *gpu.MatMul) { o.Y = overlapping }, 1},
		{"a Y behind", func(o *gpu.MatMul) { o.Y = first.Y; o.Y.Offset += 4 * rows * dim }, 2},
		{"a bias of Y", func(o *gpu.MatMul) { o.Bias = first.Y }, 1},
		{"weights of Y", func(o *gpu.MatMul) { o.W = plain(first.Y) }, 1},
		{"Y in the weights before", func(o *gpu.MatMul) { o.Y = w.Weight }, 1},
	} {
		second := first
		second.Y = f(dim * dim * rows)
		c.change(&second)
		x := &executor{kernels: d.kernels, pool: d.pool, threads: d.Threads(), rounds: true}
		if got := x.runMatMuls([]gpu.Op{&first, &second}); got != c.want {
			t.Errorf("%s: %d products in the job, want %d", c.name, got, c.want)
		}
	}
}
