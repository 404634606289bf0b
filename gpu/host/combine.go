package host

import "github.com/moeflux/moeflux-actor/gpu"

// combineTask ends a Mixture-of-Experts layer; a chunk is some rows.
type combineTask struct {
	routed, shared, gate, residual, y []float32 // shared and gate may be nil
	weights                           []float32
	rows, topK, dim, per              int
}

func (t *combineTask) do(s *scratch, chunk int) {
	acc := grow(&s.a, t.dim)
	for r := chunk * t.per; r < min((chunk+1)*t.per, t.rows); r++ {
		clear(acc)
		for k := range t.topK {
			addScaled(acc, t.routed[(r*t.topK+k)*t.dim:], t.weights[r*t.topK+k])
		}
		if t.shared != nil {
			scale := float32(1)
			if t.gate != nil {
				scale = sigmoid(t.gate[r])
			}
			addScaled(acc, t.shared[r*t.dim:], scale)
		}
		residual, y := t.residual[r*t.dim:][:t.dim], t.y[r*t.dim:][:t.dim]
		for i, v := range acc {
			y[i] = residual[i] + v
		}
	}
}

// addScaled adds w·x to acc [len(acc)].
func addScaled(acc, x []float32, w float32) {
	x = x[:len(acc)]
	for i := range acc {
		acc[i] += float32(w * x[i])
	}
}

func (x *executor) runCombine(o *gpu.Combine) {
	n := o.Rows * o.Dim
	t := &x.combine
	*t = combineTask{weights: o.Weights, rows: o.Rows, topK: o.TopK, dim: o.Dim, per: x.width(o.Rows, 1)}
	t.routed, t.residual, t.y = floatsAt(o.Routed, n*o.TopK), floatsAt(o.Residual, n), floatsAt(o.Y, n)
	if !o.Shared.IsZero() {
		t.shared = floatsAt(o.Shared, n)
	}
	if !o.SharedGate.IsZero() {
		t.gate = floatsAt(o.SharedGate, o.Rows)
	}
	x.parallel(t, chunks(o.Rows, t.per), n*(o.TopK+2))
	*t = combineTask{}
}
