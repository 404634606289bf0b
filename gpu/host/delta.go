package host

import (
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

// deltaTask is the gated delta rule; a chunk is one value head of one segment.
type deltaTask struct {
	qkv, alpha, beta, aLog, dtBias, y      []float32
	keyHeads, valueHeads, keyDim, valueDim int
	segments                               []gpu.StateSegment
}

func (t *deltaTask) do(s *scratch, chunk int) {
	seg, h := &t.segments[chunk/t.valueHeads], chunk%t.valueHeads
	size := t.valueDim * t.keyDim
	state := floatsAt(seg.State, t.valueHeads*size)[h*size:][:size]
	key := h / (t.valueHeads / t.keyHeads)
	width := 2*t.keyHeads*t.keyDim + t.valueHeads*t.valueDim
	q, k := grow(&s.a, t.keyDim), grow(&s.b, t.keyDim)
	decay := -math.Exp(float64(t.aLog[h]))
	for r := seg.Row; r < seg.Row+seg.Rows; r++ {
		row := t.qkv[r*width:][:width]
		normalise(q, row[key*t.keyDim:], 1/math.Sqrt(float64(t.keyDim)))
		normalise(k, row[(t.keyHeads+key)*t.keyDim:], 1)
		v := row[2*t.keyHeads*t.keyDim+h*t.valueDim:][:t.valueDim]
		// The sum in float32, as the definition's operands are.
		g := float32(math.Exp(decay * softplus(float64(t.alpha[r*t.valueHeads+h]+t.dtBias[h]))))
		beta := sigmoid(t.beta[r*t.valueHeads+h])
		advance(state, q, k, v, t.y[(r*t.valueHeads+h)*t.valueDim:][:t.valueDim], g, beta)
	}
}

// normalise writes x/sqrt(Σx²+1e-6)·scale to y [len(y)]; the factor is computed in float64.
func normalise(y, x []float32, scale float64) {
	x = x[:len(y)]
	f := float32(scale / math.Sqrt(float64(sumSquares(x))+1e-6))
	for i, v := range x {
		y[i] = v * f
	}
}

// advance takes one row through a head's state [len(v), len(k)], reading it once: with a = S·k and c = S·q of the old
// state, δ = β·(v - g·a), y = g·c + δ·(k·q), S ← g·S + δ·kᵀ. Dot products are sums of four lanes.
func advance(state, q, k, v, y []float32, g, beta float32) {
	n := len(k)
	kq := dot(k, q)
	for i, value := range v {
		s := state[i*n:][:n]
		a, c := dotTwo(s, k, q)
		delta := beta * (value - float32(g*a))
		y[i] = float32(g*c) + float32(delta*kq)
		for j, e := range k {
			s[j] = float32(g*s[j]) + float32(delta*e)
		}
	}
}

func (x *executor) runDelta(o *gpu.DeltaRule) {
	rows, count := 0, 0
	for i := range o.Segments {
		rows = max(rows, o.Segments[i].Row+o.Segments[i].Rows)
		count += o.Segments[i].Rows
	}
	values := o.ValueHeads * o.ValueDim
	t := &x.delta
	*t = deltaTask{keyHeads: o.KeyHeads, valueHeads: o.ValueHeads, keyDim: o.KeyDim, valueDim: o.ValueDim, segments: o.Segments}
	t.qkv = floatsAt(o.QKV, rows*(2*o.KeyHeads*o.KeyDim+values))
	t.alpha, t.beta = floatsAt(o.Alpha, rows*o.ValueHeads), floatsAt(o.Beta, rows*o.ValueHeads)
	t.aLog, t.dtBias = floatsAt(o.ALog, o.ValueHeads), floatsAt(o.DtBias, o.ValueHeads)
	t.y = floatsAt(o.Y, rows*values)
	x.parallel(t, o.ValueHeads*len(o.Segments), count*values*o.KeyDim*2)
	*t = deltaTask{}
}
