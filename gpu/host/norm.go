package host

import "github.com/moeflux/moeflux-actor/gpu"

// rootNS is the time that the square root and the calls take for a vector.
const rootNS = 20

type normTask struct {
	*vectors
	x, y, w          []float32 // w is nil for all ones
	xStride, yStride int
	count, dim       int
	per              int // vectors in a chunk
	eps              float32
}

func (t *normTask) do(_ *scratch, chunk int) {
	for v := chunk * t.per; v < min((chunk+1)*t.per, t.count); v++ {
		x, y := t.x[v*t.xStride:][:t.dim], t.y[v*t.yStride:][:t.dim]
		t.norm(y, x, t.w, t.inverseRMS(x, t.eps))
	}
}

func (x *executor) runNorm(o *gpu.RMSNorm) {
	t, n := &x.norm, o.Vectors*o.Dim
	*t = normTask{vectors: x.vectors, count: o.Vectors, dim: o.Dim, eps: o.Eps, per: x.width(o.Vectors, 1)}
	t.xStride, t.yStride = or(o.XStride, o.Dim), or(o.YStride, o.Dim)
	t.x = floatsAt(o.X, (o.Vectors-1)*t.xStride+o.Dim)
	t.y = floatsAt(o.Y, (o.Vectors-1)*t.yStride+o.Dim)
	if !o.W.IsZero() {
		t.w = floatsAt(o.W, o.Dim)
	}
	x.parallel(t, chunks(o.Vectors, t.per), x.vectors.moving(n)+o.Vectors*rootNS)
	*t = normTask{}
}

type gatedTask struct {
	*vectors
	x, z, w, y []float32
	count, dim int
	per        int // vectors in a chunk
	eps        float32
}

func (t *gatedTask) do(_ *scratch, chunk int) {
	for v := chunk * t.per; v < min((chunk+1)*t.per, t.count); v++ {
		x, y, z := t.x[v*t.dim:][:t.dim], t.y[v*t.dim:][:t.dim], t.z[v*t.dim:][:t.dim]
		t.gatedNorm(y, x, t.w, z, t.inverseRMS(x, t.eps))
	}
}

func (x *executor) runGatedNorm(o *gpu.GatedNorm) {
	n := o.Vectors * o.Dim
	t := &x.gated
	*t = gatedTask{vectors: x.vectors, count: o.Vectors, dim: o.Dim, eps: o.Eps, per: x.width(o.Vectors, 1)}
	t.x, t.z, t.y, t.w = floatsAt(o.X, n), floatsAt(o.Z, n), floatsAt(o.Y, n), floatsAt(o.W, o.Dim)
	x.parallel(t, chunks(o.Vectors, t.per), x.vectors.exponentials(n)+o.Vectors*rootNS)
	*t = gatedTask{}
}
