package host

import (
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

// deltaTask is the gated delta rule; a chunk is one value head of one segment.
type deltaTask struct {
	*vectors
	qkv, alpha, beta, aLog, dtBias, y      []float32
	keyHeads, valueHeads, keyDim, valueDim int
	segments                               []gpu.StateSegment
}

// deltaRowNS is the time that a row's gates and lengths take for a head.
const deltaRowNS = 150

// deltaRows is how many rows of input are prepared at a time: what a head's rows of state are then taken through
// should stay in the second cache.
const deltaRows = 64

func (t *deltaTask) do(s *scratch, chunk int) {
	seg, h := &t.segments[chunk/t.valueHeads], chunk%t.valueHeads
	size := t.valueDim * t.keyDim
	state := floatsAt(seg.State, t.valueHeads*size)[h*size:][:size]
	width := 2*t.keyHeads*t.keyDim + t.valueHeads*t.valueDim
	n := min(deltaRows, seg.Rows)
	keys, gates := grow(&s.a, n*2*t.keyDim), grow(&s.b, n*4)
	for first := seg.Row; first < seg.Row+seg.Rows; first += deltaRows {
		rows := min(deltaRows, seg.Row+seg.Rows-first)
		for r := range rows {
			t.prepare(keys[r*2*t.keyDim:(r+1)*2*t.keyDim], gates[r*4:(r+1)*4], first+r, h)
		}
		v := t.qkv[first*width+2*t.keyHeads*t.keyDim+h*t.valueDim:]
		t.scan(state, keys[:rows*2*t.keyDim], gates[:rows*4], v, t.y[(first*t.valueHeads+h)*t.valueDim:], width)
	}
}

// prepare writes row r's normalised key and query [2, keyDim] and its decay, β and key·query of value head h.
func (t *deltaTask) prepare(keys, gates []float32, r, h int) {
	width := 2*t.keyHeads*t.keyDim + t.valueHeads*t.valueDim
	key := h / (t.valueHeads / t.keyHeads)
	row := t.qkv[r*width:][:width]
	k, q := keys[:t.keyDim], keys[t.keyDim:]
	t.normalise(k, row[(t.keyHeads+key)*t.keyDim:], 1)
	t.normalise(q, row[key*t.keyDim:], 1/math.Sqrt(float64(t.keyDim)))
	decay := -math.Exp(float64(t.aLog[h]))
	// The sum in float32, as the definition's operands are.
	gates[0] = float32(math.Exp(decay * softplus(float64(t.alpha[r*t.valueHeads+h]+t.dtBias[h]))))
	gates[1] = sigmoid(t.beta[r*t.valueHeads+h])
	gates[2], gates[3] = t.dot(k, q), 0
}

// normalise writes x/sqrt(Σx²+1e-6)·scale to y [len(y)]; the factor is computed in float64.
func (t *deltaTask) normalise(y, x []float32, scale float64) {
	x = x[:len(y)]
	t.norm(y, x, nil, float32(scale/math.Sqrt(float64(t.dot(x, x))+1e-6)))
}

// scan takes the head's state through rows that are prepared: in the variant's way as far as there are whole vectors of keys and of
// values, the rest in the portable one.
func (t *deltaTask) scan(state, keys, gates, v, y []float32, width int) {
	yStride := t.valueHeads * t.valueDim
	whole := 0
	if t.keyDim%t.lanes == 0 {
		whole = t.valueDim / t.lanes * t.lanes
	}
	for i := 0; i < whole; i += t.lanes {
		t.delta(state[i*t.keyDim:(i+t.lanes)*t.keyDim], keys, gates, v[i:], y[i:], width, yStride)
	}
	if whole < t.valueDim {
		portableDelta(state[whole*t.keyDim:], keys, gates, v[whole:], y[whole:], width, yStride)
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
	*t = deltaTask{vectors: x.vectors, keyHeads: o.KeyHeads, valueHeads: o.ValueHeads, keyDim: o.KeyDim, valueDim: o.ValueDim, segments: o.Segments}
	t.qkv = floatsAt(o.QKV, rows*(2*o.KeyHeads*o.KeyDim+values))
	t.alpha, t.beta = floatsAt(o.Alpha, rows*o.ValueHeads), floatsAt(o.Beta, rows*o.ValueHeads)
	t.aLog, t.dtBias = floatsAt(o.ALog, o.ValueHeads), floatsAt(o.DtBias, o.ValueHeads)
	t.y = floatsAt(o.Y, rows*values)
	x.parallel(t, o.ValueHeads*len(o.Segments), x.vectors.multiplying(3*count*values*o.KeyDim)+count*o.ValueHeads*deltaRowNS)
	*t = deltaTask{}
}
