package host

import (
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

// latentBlock is how many positions of the cache are expanded at a time. Blocks begin at its multiples, so that a row's
// bits depend on its position alone.
const latentBlock = 64

// latentTask is attention over expanded latents; a chunk is one head.
type latentTask struct {
	op           *gpu.LatentAttention
	q, y         []float32
	keys, values matrix
	rows         int // of the largest segment
}

// latentHead is one head's weights and what is being computed of it.
type latentHead struct {
	keys   []float32 // [Nope, Rank]
	values []float32 // [ValueDim, Rank]
	k      []float32 // [latentBlock, Nope+Rope] of the block
	v      []float32 // [latentBlock, ValueDim]
	scores []float32 // [latentBlock]
	rows   []float32 // [rows, ValueDim+2]: weighted values, their weights' sum, the largest score
}

func (t *latentTask) do(s *scratch, h int) {
	o := t.op
	b := t.load(s, h)
	for i := range o.Segments {
		seg := &o.Segments[i]
		width := o.ValueDim + 2
		for r := range seg.Rows {
			state := b.rows[r*width : (r+1)*width]
			clear(state)
			state[width-1] = float32(math.Inf(-1))
		}
		for p := 0; p < seg.Pos+seg.Rows; p += latentBlock {
			n := min(latentBlock, seg.Pos+seg.Rows-p)
			t.expand(&b, &seg.KV, p, n)
			for r := max(p-seg.Pos, 0); r < seg.Rows; r++ {
				t.attend(&b, seg, h, r, min(n, seg.Pos+r+1-p))
			}
		}
		for r := range seg.Rows {
			state := b.rows[r*width : (r+1)*width]
			y := t.y[((seg.Row+r)*o.Heads+h)*o.ValueDim:][:o.ValueDim]
			for d := range y {
				y[d] = state[d] / state[o.ValueDim]
			}
		}
	}
}

// load dequantises the head's weights.
func (t *latentTask) load(s *scratch, h int) latentHead {
	o := t.op
	mem := grow(&s.a, o.Nope*o.Rank+o.ValueDim*o.Rank+latentBlock*(o.Nope+o.Rope+o.ValueDim+1)+t.rows*(o.ValueDim+2))
	take := func(n int) []float32 {
		part := mem[:n:n]
		mem = mem[n:]
		return part
	}
	b := latentHead{
		keys: take(o.Nope * o.Rank), values: take(o.ValueDim * o.Rank), k: take(latentBlock * (o.Nope + o.Rope)),
		v: take(latentBlock * o.ValueDim), scores: take(latentBlock), rows: take(t.rows * (o.ValueDim + 2)),
	}
	if o.KeysTransposed {
		row := grow(&s.b, o.Nope)
		for c := range o.Rank {
			t.keys.dequantise(row, h*o.KeyRows+c)
			for d, w := range row {
				b.keys[d*o.Rank+c] = w
			}
		}
	} else {
		for d := range o.Nope {
			t.keys.dequantise(b.keys[d*o.Rank:(d+1)*o.Rank], h*o.KeyRows+d)
		}
	}
	for d := range o.ValueDim {
		t.values.dequantise(b.values[d*o.Rank:(d+1)*o.Rank], h*o.ValueRows+o.FirstValue+d)
	}
	return b
}

// expand computes keys and values of the n positions from p on.
func (t *latentTask) expand(b *latentHead, kv *gpu.KV, p, n int) {
	o := t.op
	for j := range n {
		row := keys(kv, (p+j)/kv.PageRows)[(p+j)%kv.PageRows*kv.Dim:][:kv.Dim]
		k := b.k[j*(o.Nope+o.Rope):][:o.Nope+o.Rope]
		for d := range o.Nope {
			k[d] = dotBlocks(b.keys[d*o.Rank:(d+1)*o.Rank], row)
		}
		copy(k[o.Nope:], row[o.Rank:])
		v := b.v[j*o.ValueDim:][:o.ValueDim]
		for d := range v {
			v[d] = dotBlocks(b.values[d*o.Rank:(d+1)*o.Rank], row)
		}
	}
}

// attend adds the first n positions of the block to row r of a segment, the softmax being kept right as it grows.
func (t *latentTask) attend(b *latentHead, seg *gpu.KVSegment, h, r, n int) {
	o := t.op
	width := o.Nope + o.Rope
	q := t.q[(seg.Row+r)*o.QRowStride+h*o.QHeadStride:][:width]
	state := b.rows[r*(o.ValueDim+2):][:o.ValueDim+2]
	before := state[o.ValueDim+1]
	top := before
	for j := range n {
		b.scores[j] = o.Scale * dotBlocks(q, b.k[j*width:(j+1)*width])
		top = max(top, b.scores[j])
	}
	if top != before {
		f := float32(math.Exp(float64(before - top)))
		for d := range state[:o.ValueDim+1] {
			state[d] *= f
		}
		state[o.ValueDim+1] = top
	}
	acc := state[:o.ValueDim]
	for j, s := range b.scores[:n] {
		a := float32(math.Exp(float64(s - top)))
		state[o.ValueDim] += a
		addTimes(acc, a, b.v[j*o.ValueDim:(j+1)*o.ValueDim])
	}
}

func (x *executor) runLatentAttention(o *gpu.LatentAttention) {
	t := &x.latent
	*t = latentTask{op: o, keys: matrixOf(&o.Keys), values: matrixOf(&o.Values)}
	rows, work := 0, 0
	for i := range o.Segments {
		s := &o.Segments[i]
		rows = max(rows, s.Row+s.Rows)
		t.rows = max(t.rows, s.Rows)
		work += (s.Pos + s.Rows) * ((o.Nope+o.ValueDim)*o.Rank + s.Rows*(o.Nope+o.Rope+o.ValueDim))
	}
	t.q = floatsAt(o.Q, (rows-1)*o.QRowStride+(o.Heads-1)*o.QHeadStride+o.Nope+o.Rope)
	t.y = floatsAt(o.Y, rows*o.Heads*o.ValueDim)
	x.parallel(t, o.Heads, o.Heads*work)
	*t = latentTask{}
}
