package host

import (
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

const (
	// chooseRows is how many rows of a segment share the reading of keys, and chooseSpan how many
	// positions a chunk scores.
	chooseRows, chooseSpan = 8, 1024
	// chooseScores bounds how many scores are kept at once.
	chooseScores = 1 << 22
)

// chooseBand is rows of a segment that are scored together.
type chooseBand struct {
	seg      *gpu.KVSegment
	row      int // of the operation
	rows, at int // at: where their scores begin
}

// last returns the position of the band's last row.
func (b *chooseBand) last() int { return b.seg.Pos + b.row - b.seg.Row + b.rows - 1 }

// chooseTask chooses positions. A chunk is a span of a band's scores, or, when these are there, the
// choice of a band's rows.
type chooseTask struct {
	*vectors
	op         *gpu.Choose
	q, weights []float32
	chosen     []int32
	bands      []chooseBand // kept from operation to operation, like what follows
	scores     []float32    // [rows, stride]
	rows       int
	stride     int
	spans      int // of a band; 0: scores are there
}

func (t *chooseTask) do(s *scratch, chunk int) {
	if t.spans == 0 {
		t.chooseBand(&t.bands[chunk])
		return
	}
	b := &t.bands[chunk/t.spans]
	first := chunk % t.spans * chooseSpan
	if end := min(first+chooseSpan, b.last()+1); first < end {
		t.score(s, b, first, end)
	}
}

// score computes the scores of the positions from first to end. Each is a sum over the channels and
// then over the heads, both in order, whatever is scored beside it.
func (t *chooseTask) score(s *scratch, b *chooseBand, first, end int) {
	o := t.op
	heads := b.rows * o.Heads
	mem := aligned(grow(&s.a, lineFloats+lineUp(heads*o.Dim)+o.Dim*attnBlock+lineUp(t.lanes*o.Dim)+(heads+1)*attnBlock))
	take := func(n int) []float32 { return floats(&mem, lineUp(n))[:n] }
	q, kt, pad := take(heads*o.Dim), take(o.Dim*attnBlock), take(t.lanes*o.Dim)
	products, sums := take(heads*attnBlock), take(attnBlock)
	for i := range heads {
		t.norm(q[i*o.Dim:(i+1)*o.Dim], t.q[(b.row*o.Heads+i)*o.Dim:][:o.Dim], nil, o.Scale)
	}
	for p := first; p < end; p += attnBlock {
		n := min(attnBlock, end-p)
		t.transposeKeys(kt, pad, &b.seg.KV, 0, o.Dim, p, n)
		t.multiply(products, q, kt, attnBlock, o.Dim, attnBlock, heads, o.Dim, n, false)
		rectify(products)
		for r := range b.rows {
			weights := t.weights[(b.row+r)*o.Heads:][:o.Heads]
			t.multiply(sums, weights, products[r*o.Heads*attnBlock:], attnBlock, o.Heads, attnBlock, 1, o.Heads, n, false)
			copy(t.scores[b.at+r*t.stride+p:][:n], sums)
		}
	}
}

// rectify replaces what is below 0 by 0, without a branch that nobody could predict. NaN stays.
func rectify(x []float32) {
	for i, v := range x {
		x[i] = (v + math.Float32frombits(math.Float32bits(v)&^(1<<31))) * 0.5
	}
}

// chooseBand chooses the positions of a band's rows.
func (t *chooseTask) chooseBand(b *chooseBand) {
	k := t.op.K
	for r := range b.rows {
		seen := b.last() - b.rows + r + 2
		choosePositions(t.chosen[(b.row+r)*k:][:min(k, seen)], t.scores[b.at+r*t.stride:][:seen])
	}
}

// choosePositions writes the positions of the largest scores, as many as dst has room for, rising.
func choosePositions(dst []int32, scores []float32) {
	least, equal := leastChosen(scores, len(dst))
	n := 0
	for i, s := range scores {
		key := scoreKey(s)
		if key < least || key == least && equal == 0 {
			continue
		}
		if key == least {
			equal--
		}
		dst[n] = int32(i)
		n++
	}
}

// scoreKey turns a score into a number of the same order: NaN is the largest, -0 equals 0.
func scoreKey(s float32) uint32 {
	switch bits := math.Float32bits(s); {
	case s != s:
		return math.MaxUint32
	case s == 0:
		return 1 << 31
	case s < 0:
		return ^bits
	default:
		return bits | 1<<31
	}
}

// leastChosen returns the k-th largest key of the scores, and how many of the chosen ones have it.
// It finds 8 bits of the key in each of four passes.
func leastChosen(scores []float32, k int) (least uint32, equal int) {
	for shift := 24; shift >= 0; shift -= 8 {
		var count [256]int
		above := ^uint32(0) << (shift + 8) // what is known of the key
		for _, s := range scores {
			if key := scoreKey(s); key&above == least {
				count[key>>shift&0xff]++
			}
		}
		digit := 255
		for ; count[digit] < k; digit-- {
			k -= count[digit]
		}
		least |= uint32(digit) << shift
	}
	return least, k
}

func (x *executor) runChoose(o *gpu.Choose) {
	t := &x.choose
	rows := 0
	for i := range o.Segments {
		rows = max(rows, o.Segments[i].Row+o.Segments[i].Rows)
	}
	t.vectors, t.op = x.vectors, o
	t.q, t.weights, t.chosen = floatsAt(o.Q, rows*o.Heads*o.Dim), floatsAt(o.Weights, rows*o.Heads), intsAt(o.Chosen, rows*o.K)
	for i := range o.Segments {
		s := &o.Segments[i]
		for r := 0; r < s.Rows; r += chooseRows {
			b := chooseBand{seg: s, row: s.Row + r, rows: min(chooseRows, s.Rows-r)}
			if len(t.bands) > 0 && (t.rows+b.rows)*max(t.stride, b.last()+1) > chooseScores {
				x.chooseBands(t)
			}
			t.bands, t.rows, t.stride = append(t.bands, b), t.rows+b.rows, max(t.stride, b.last()+1)
		}
	}
	x.chooseBands(t)
	t.op, t.q, t.weights, t.chosen = nil, nil, nil, nil
}

// chooseBands scores the positions of the bands gathered so far and chooses. It takes the bands
// away.
func (x *executor) chooseBands(t *chooseTask) {
	const keyNS = 8 // to choose among scores, for each
	o, floats, ns, keys := t.op, 0, 0, 0
	for i := range t.bands {
		b := &t.bands[i]
		b.at = floats
		floats += b.rows * t.stride
		ns += x.vectors.multiplying(b.rows*(b.last()+1)*o.Heads*(o.Dim+2)) + x.vectors.moving((b.last()+1)*o.Dim)
		keys += b.rows * (b.last() + 1)
	}
	grow(&t.scores, floats)
	t.scores, t.spans = t.scores[:cap(t.scores)], chunks(t.stride, chooseSpan)
	x.parallel(t, len(t.bands)*t.spans, ns)
	t.spans = 0
	x.parallel(t, len(t.bands), keyNS*keys)
	clear(t.bands)
	t.bands, t.rows, t.stride = t.bands[:0], 0, 0
}
