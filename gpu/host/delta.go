package host

import (
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

// deltaTask is the gated delta rule; a chunk is one key head of one segment and its value heads.
type deltaTask struct {
	*vectors
	qkv, alpha, beta, aLog, dtBias, y      []float32
	keyHeads, valueHeads, keyDim, valueDim int
	segments                               []gpu.StateSegment
	stateAt                                int
}

// deltaRowNS is the time that the gates and norms of a row take for one head.
const deltaRowNS = 150

// deltaRows is how many rows of input are prepared at a time. They should stay in the second-level
// cache while a head's state passes through them.
const deltaRows = 64

func (t *deltaTask) do(s *scratch, chunk int) {
	seg, key := &t.segments[chunk/t.keyHeads], chunk%t.keyHeads
	size, group := t.valueDim*t.keyDim, t.valueHeads/t.keyHeads
	state := floatsAt(seg.State.At(t.stateAt), t.valueHeads*size)
	n := min(deltaRows, seg.Rows)
	mem := aligned(grow(&s.a, lineFloats+lineUp(n*2*t.keyDim)+lineUp(n*4)+n*t.valueDim+n))
	keys, gates, values, dots := floats(&mem, lineUp(n*2*t.keyDim)), floats(&mem, lineUp(n*4)), floats(&mem, n*t.valueDim), floats(&mem, n)
	for first := seg.Row; first < seg.Row+seg.Rows; first += deltaRows {
		rows := min(deltaRows, seg.Row+seg.Rows-first)
		for r := range rows {
			dots[r] = t.keysOf(keys[r*2*t.keyDim:(r+1)*2*t.keyDim], first+r, key)
		}
		for h := key * group; h < (key+1)*group; h++ {
			// Values are copied together, and outputs take their place: rows a power of two apart
			// would share few lines of a cache.
			for r := range rows {
				t.gatesOf(gates[r*4:(r+1)*4], first+r, h, dots[r])
				copy(values[r*t.valueDim:(r+1)*t.valueDim], t.qkv[(first+r)*t.width()+2*t.keyHeads*t.keyDim+h*t.valueDim:])
			}
			t.scan(state[h*size:(h+1)*size], keys[:rows*2*t.keyDim], gates[:rows*4], values)
			for r := range rows {
				copy(t.y[((first+r)*t.valueHeads+h)*t.valueDim:][:t.valueDim], values[r*t.valueDim:])
			}
		}
	}
}

// width returns the width of a row of qkv.
func (t *deltaTask) width() int { return 2*t.keyHeads*t.keyDim + t.valueHeads*t.valueDim }

// keysOf writes row r's normalised key and query of a key head to dst [2, keyDim] and returns their
// product.
func (t *deltaTask) keysOf(dst []float32, r, key int) float32 {
	row := t.qkv[r*t.width():][:t.width()]
	k, q := dst[:t.keyDim], dst[t.keyDim:]
	t.normalise(k, row[(t.keyHeads+key)*t.keyDim:], 1)
	t.normalise(q, row[key*t.keyDim:], 1/math.Sqrt(float64(t.keyDim)))
	return t.dot(k, q)
}

// gatesOf writes row r's decay, β and key·query of value head h.
func (t *deltaTask) gatesOf(gates []float32, r, h int, kq float32) {
	decay := -math.Exp(float64(t.aLog[h]))
	// The sum is float32, as the definition's operands are.
	gates[0] = float32(math.Exp(decay * softplus(float64(t.alpha[r*t.valueHeads+h]+t.dtBias[h]))))
	gates[1] = sigmoid(t.beta[r*t.valueHeads+h])
	gates[2], gates[3] = kq, 0
}

// normalise writes x/sqrt(Σx²+1e-6)·scale to y [len(y)]; the factor is computed in float64.
func (t *deltaTask) normalise(y, x []float32, scale float64) {
	x = x[:len(y)]
	t.norm(y, x, nil, float32(scale/math.Sqrt(float64(t.dot(x, x))+1e-6)))
}

// scan takes a head's state through prepared rows. Whole vectors of keys and of values go through
// the variant's primitive, the rest through the portable one. The outputs replace the values [rows,
// valueDim].
func (t *deltaTask) scan(state, keys, gates, values []float32) {
	whole := 0
	if t.keyDim%t.lanes == 0 {
		whole = t.valueDim / t.lanes * t.lanes
	}
	for i := 0; i < whole; i += t.lanes {
		t.delta(state[i*t.keyDim:(i+t.lanes)*t.keyDim], keys, gates, values[i:], values[i:], t.valueDim, t.valueDim)
	}
	if whole < t.valueDim {
		portableDelta(state[whole*t.keyDim:], keys, gates, values[whole:], values[whole:], t.valueDim, t.valueDim)
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
	*t = deltaTask{vectors: x.vectors, keyHeads: o.KeyHeads, valueHeads: o.ValueHeads, keyDim: o.KeyDim, valueDim: o.ValueDim, segments: o.Segments, stateAt: o.StateAt}
	t.qkv = floatsAt(o.QKV, rows*(2*o.KeyHeads*o.KeyDim+values))
	t.alpha, t.beta = floatsAt(o.Alpha, rows*o.ValueHeads), floatsAt(o.Beta, rows*o.ValueHeads)
	t.aLog, t.dtBias = floatsAt(o.ALog, o.ValueHeads), floatsAt(o.DtBias, o.ValueHeads)
	t.y = floatsAt(o.Y, rows*values)
	x.parallel(t, o.KeyHeads*len(o.Segments), x.vectors.multiplying(3*count*values*o.KeyDim)+count*o.ValueHeads*deltaRowNS)
	*t = deltaTask{}
}
