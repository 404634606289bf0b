package host

import "github.com/moeflux/moeflux-actor/gpu"

// lineFloats is the unit in which elementwise work is divided: one cache line.
const lineFloats = 16

type addTask struct {
	*vectors
	a, b, y []float32
	per     int
}

func (t *addTask) do(_ *scratch, chunk int) {
	i, end := chunk*t.per, min((chunk+1)*t.per, len(t.y))
	t.add(t.y[i:end], t.a[i:end], t.b[i:end])
}

func (x *executor) runAdd(o *gpu.Add) {
	t := &x.add
	*t = addTask{x.vectors, floatsAt(o.A, o.N), floatsAt(o.B, o.N), floatsAt(o.Y, o.N), x.width(o.N, lineFloats)}
	x.parallel(t, chunks(o.N, t.per), x.vectors.moving(o.N))
	*t = addTask{}
}

type swigluTask struct {
	*vectors
	gate, up, y []float32
	per         int
	clamp       gpu.Clamp
}

func (t *swigluTask) do(_ *scratch, chunk int) {
	i, end := chunk*t.per, min((chunk+1)*t.per, len(t.y))
	if t.clamp.Limit > 0 {
		bounded(t.clamp, t.y[i:end], t.gate[i:end], t.up[i:end])
		return
	}
	t.vectors.swiglu(t.y[i:end], t.gate[i:end], t.up[i:end])
}

// bounded writes the units that a gpu.Clamp with a limit asks for to y, which may be either. The
// products before it take a hundred times as long.
func bounded(c gpu.Clamp, y, gate, up []float32) {
	for i, u := range up {
		u = min(max(u, -c.Limit), c.Limit)
		if c.Alpha == 0 {
			y[i] = min(silu(gate[i]), c.Limit) * u
			continue
		}
		y[i] = silu(c.Alpha*min(gate[i], c.Limit)) * ((u + 1) / c.Alpha)
	}
}

func (x *executor) runSwiGLU(o *gpu.SwiGLU) {
	n := o.Rows * o.Dim
	t := &x.swiglu
	*t = swigluTask{x.vectors, floatsAt(o.Gate, n), floatsAt(o.Up, n), floatsAt(o.Y, n), x.width(n, lineFloats), o.Clamp}
	x.parallel(t, chunks(n, t.per), x.vectors.exponentials(n))
	*t = swigluTask{}
}

// gateTask is SigmoidGate over vectors (row, head).
type gateTask struct {
	*vectors
	x, g                  []float32
	heads, dim            int
	rowStride, headStride int
	count, per            int
	perHead               bool
}

func (t *gateTask) do(_ *scratch, chunk int) {
	for v := chunk * t.per; v < min((chunk+1)*t.per, t.count); v++ {
		x := t.x[v*t.dim:][:t.dim]
		g := t.g[v/t.heads*t.rowStride+v%t.heads*t.headStride:]
		if t.perHead {
			t.norm(x, x, nil, sigmoid(g[0]))
			continue
		}
		t.gate(x, g[:t.dim])
	}
}

func (x *executor) runSigmoidGate(o *gpu.SigmoidGate) {
	t := &x.gate
	*t = gateTask{vectors: x.vectors, heads: o.Heads, dim: o.Dim, rowStride: o.GRowStride, headStride: o.GHeadStride, count: o.Rows * o.Heads, perHead: o.PerHead}
	t.x = floatsAt(o.X, t.count*o.Dim)
	t.g = floatsAt(o.G, (o.Rows-1)*o.GRowStride+(o.Heads-1)*o.GHeadStride+o.GateDim())
	t.per = x.width(t.count, 1)
	x.parallel(t, chunks(t.count, t.per), x.vectors.exponentials(t.count*o.Dim))
	*t = gateTask{}
}
