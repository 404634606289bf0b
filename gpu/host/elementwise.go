package host

import "github.com/moeflux/moeflux-actor/gpu"

// lineFloats is the unit in which elementwise work is cut: one cache line.
const lineFloats = 16

type addTask struct {
	a, b, y []float32
	per     int
}

func (t *addTask) do(_ *scratch, chunk int) {
	i, end := chunk*t.per, min((chunk+1)*t.per, len(t.y))
	a, b, y := t.a[i:end], t.b[i:end], t.y[i:end]
	for i := range y {
		y[i] = a[i] + b[i]
	}
}

func (x *executor) runAdd(o *gpu.Add) {
	t := &x.add
	*t = addTask{floatsAt(o.A, o.N), floatsAt(o.B, o.N), floatsAt(o.Y, o.N), x.width(o.N, lineFloats)}
	x.parallel(t, chunks(o.N, t.per), o.N/2)
	*t = addTask{}
}

type swigluTask struct {
	gate, up, y []float32
	per         int
}

func (t *swigluTask) do(_ *scratch, chunk int) {
	i, end := chunk*t.per, min((chunk+1)*t.per, len(t.y))
	swiglu(t.y[i:end], t.gate[i:end], t.up[i:end])
}

// swiglu writes silu(gate)·up to y, which may be either.
func swiglu(y, gate, up []float32) {
	for i := range y {
		y[i] = silu(gate[i]) * up[i]
	}
}

func (x *executor) runSwiGLU(o *gpu.SwiGLU) {
	n := o.Rows * o.Dim
	t := &x.swiglu
	*t = swigluTask{floatsAt(o.Gate, n), floatsAt(o.Up, n), floatsAt(o.Y, n), x.width(n, lineFloats)}
	x.parallel(t, chunks(n, t.per), n*6)
	*t = swigluTask{}
}

// gateTask is SigmoidGate over vectors (row, head).
type gateTask struct {
	x, g                  []float32
	heads, dim            int
	rowStride, headStride int
	vectors, per          int
}

func (t *gateTask) do(_ *scratch, chunk int) {
	for v := chunk * t.per; v < min((chunk+1)*t.per, t.vectors); v++ {
		x := t.x[v*t.dim:][:t.dim]
		g := t.g[v/t.heads*t.rowStride+v%t.heads*t.headStride:][:t.dim]
		for i := range x {
			x[i] *= sigmoid(g[i])
		}
	}
}

func (x *executor) runSigmoidGate(o *gpu.SigmoidGate) {
	t := &x.gate
	*t = gateTask{heads: o.Heads, dim: o.Dim, rowStride: o.GRowStride, headStride: o.GHeadStride, vectors: o.Rows * o.Heads}
	t.x = floatsAt(o.X, t.vectors*o.Dim)
	t.g = floatsAt(o.G, (o.Rows-1)*o.GRowStride+(o.Heads-1)*o.GHeadStride+o.Dim)
	t.per = x.width(t.vectors, 1)
	x.parallel(t, chunks(t.vectors, t.per), t.vectors*o.Dim*6)
	*t = gateTask{}
}
