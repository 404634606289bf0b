package host

import (
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

// layerNormTask normalises vectors around their mean; a chunk is some vectors.
type layerNormTask struct {
	x, w, b, y []float32
	count, dim int
	per        int // vectors in a chunk
	eps        float64
}

func (t *layerNormTask) do(_ *scratch, chunk int) {
	for v := chunk * t.per; v < min((chunk+1)*t.per, t.count); v++ {
		x, y := t.x[v*t.dim:][:t.dim], t.y[v*t.dim:][:t.dim]
		sum, squares := 0.0, 0.0
		for _, e := range x {
			sum += float64(e)
		}
		mean := sum / float64(t.dim)
		for _, e := range x {
			d := float64(e) - mean
			squares += float64(d * d)
		}
		r := 1 / math.Sqrt(squares/float64(t.dim)+t.eps)
		for i, e := range x {
			y[i] = float32(float64(float64(t.w[i])*float64((float64(e)-mean)*r)) + float64(t.b[i]))
		}
	}
}

// elementNS is about how long an element takes in float64.
const elementNS = 3

func (x *executor) runLayerNorm(o *gpu.LayerNorm) {
	t, n := &x.layer, o.Vectors*o.Dim
	*t = layerNormTask{count: o.Vectors, dim: o.Dim, eps: float64(o.Eps), per: x.width(o.Vectors, 1)}
	t.x, t.y, t.w, t.b = floatsAt(o.X, n), floatsAt(o.Y, n), floatsAt(o.W, o.Dim), floatsAt(o.B, o.Dim)
	x.parallel(t, chunks(o.Vectors, t.per), n*elementNS)
	*t = layerNormTask{}
}
