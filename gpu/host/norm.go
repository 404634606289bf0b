package host

import (
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

// inverseRMS returns 1/sqrt(mean(x²)+eps). The squares are summed in blocks of 64.
func inverseRMS(x []float32, eps float32) float32 {
	mean := sumSquares(x) / float32(len(x))
	return float32(1 / math.Sqrt(float64(mean+eps)))
}

type normTask struct {
	x, y, w          []float32 // w is nil for all ones
	xStride, yStride int
	vectors, dim     int
	per              int // vectors in a chunk
	eps              float32
}

func (t *normTask) do(_ *scratch, chunk int) {
	for v := chunk * t.per; v < min((chunk+1)*t.per, t.vectors); v++ {
		x, y := t.x[v*t.xStride:][:t.dim], t.y[v*t.yStride:][:t.dim]
		r := inverseRMS(x, t.eps)
		if t.w == nil {
			for i, e := range x {
				y[i] = e * r
			}
			continue
		}
		for i, e := range x {
			y[i] = t.w[i] * (e * r)
		}
	}
}

func (x *executor) runNorm(o *gpu.RMSNorm) {
	t := &x.norm
	*t = normTask{vectors: o.Vectors, dim: o.Dim, eps: o.Eps, per: x.width(o.Vectors, 1)}
	t.xStride, t.yStride = or(o.XStride, o.Dim), or(o.YStride, o.Dim)
	t.x = floatsAt(o.X, (o.Vectors-1)*t.xStride+o.Dim)
	t.y = floatsAt(o.Y, (o.Vectors-1)*t.yStride+o.Dim)
	if !o.W.IsZero() {
		t.w = floatsAt(o.W, o.Dim)
	}
	x.parallel(t, chunks(o.Vectors, t.per), o.Vectors*o.Dim)
	*t = normTask{}
}

type gatedTask struct {
	x, z, w, y   []float32
	vectors, dim int
	per          int // vectors in a chunk
	eps          float32
}

func (t *gatedTask) do(_ *scratch, chunk int) {
	for v := chunk * t.per; v < min((chunk+1)*t.per, t.vectors); v++ {
		x, y, z := t.x[v*t.dim:][:t.dim], t.y[v*t.dim:][:t.dim], t.z[v*t.dim:][:t.dim]
		r := inverseRMS(x, t.eps)
		for i, e := range x {
			y[i] = t.w[i] * (e * r) * silu(z[i])
		}
	}
}

func (x *executor) runGatedNorm(o *gpu.GatedNorm) {
	n := o.Vectors * o.Dim
	t := &x.gated
	*t = gatedTask{vectors: o.Vectors, dim: o.Dim, eps: o.Eps, per: x.width(o.Vectors, 1)}
	t.x, t.z, t.y, t.w = floatsAt(o.X, n), floatsAt(o.Z, n), floatsAt(o.Y, n), floatsAt(o.W, o.Dim)
	x.parallel(t, chunks(o.Vectors, t.per), n*8)
	*t = gatedTask{}
}
