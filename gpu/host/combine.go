package host

import "github.com/moeflux/moeflux-actor/gpu"

// combineTask ends a Mixture-of-Experts layer; a chunk is some rows.
type combineTask struct {
	*vectors
	routed, shared, gate, residual, y []float32 // shared and gate may be nil
	weights                           []float32
	rows, topK, dim, per              int
}

func (t *combineTask) do(_ *scratch, chunk int) {
	for r := chunk * t.per; r < min((chunk+1)*t.per, t.rows); r++ {
		var shared []float32
		scale := float32(1)
		if t.shared != nil {
			shared = t.shared[r*t.dim:][:t.dim]
			if t.gate != nil {
				scale = sigmoid(t.gate[r])
			}
		}
		t.vectors.combine(t.y[r*t.dim:][:t.dim], t.residual[r*t.dim:][:t.dim], t.routed[r*t.topK*t.dim:][:t.topK*t.dim],
			t.weights[r*t.topK:(r+1)*t.topK], shared, scale)
	}
}

func (x *executor) runCombine(o *gpu.Combine) {
	n := o.Rows * o.Dim
	t := &x.combine
	*t = combineTask{vectors: x.vectors, weights: o.Weights.Host, rows: o.Rows, topK: o.TopK, dim: o.Dim, per: x.width(o.Rows, 1)}
	if !o.Weights.At.IsZero() {
		t.weights = floatsAt(o.Weights.At, o.Rows*o.TopK)
	}
	t.routed, t.residual, t.y = floatsAt(o.Routed, n*o.TopK), floatsAt(o.Residual, n), floatsAt(o.Y, n)
	if !o.Shared.IsZero() {
		t.shared = floatsAt(o.Shared, n)
	}
	if !o.SharedGate.IsZero() {
		t.gate = floatsAt(o.SharedGate, o.Rows)
	}
	x.parallel(t, chunks(o.Rows, t.per), x.vectors.moving(n*(o.TopK+2)/2))
	*t = combineTask{}
}
