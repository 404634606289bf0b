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

// pos returns the position of the band's first row, and last that of its last.
func (b *chooseBand) pos() int  { return b.seg.Pos + b.row - b.seg.Row }
func (b *chooseBand) last() int { return b.pos() + b.rows - 1 }

// chooseTask chooses entries: positions or blocks. A chunk is a span of a band's scores, or, when
// these are there, the choice of a band's rows.
type chooseTask struct {
	*vectors
	op         *gpu.Choose
	q, weights []float32
	chosen     []int32
	block      int          // positions of an entry
	bands      []chooseBand // kept from operation to operation, like what follows
	scores     []float32    // [rows, lists, stride]
	rows       int
	stride     int
	spans      int // of a band; 0: scores are there
}

// entries returns how many entries the band's last row sees.
func (t *chooseTask) entries(b *chooseBand) int { return b.last()/t.block + 1 }

// span returns how many entries a chunk scores.
func (t *chooseTask) span() int { return max(1, chooseSpan/t.block) }

func (t *chooseTask) do(s *scratch, chunk int) {
	if t.spans == 0 {
		t.chooseBand(&t.bands[chunk])
		return
	}
	b := &t.bands[chunk/t.spans]
	first := chunk % t.spans * t.span()
	if end := min(first+t.span(), t.entries(b)); first < end {
		t.score(s, b, first*t.block, min(end*t.block, b.last()+1))
	}
}

// score computes the scores of the entries that have the positions from first to end. A product is
// a sum over the channels in order, and a position's score one over the heads in order, whatever is
// scored beside it.
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
	s.cache = b.seg.In(&o.Cache)
	for p := first / attnBlock * attnBlock; p < end; p += attnBlock {
		n := min(attnBlock, end-p)
		t.transposeKeys(kt, pad, &s.cache, 0, o.Dim, p, 0, n)
		t.multiply(products, q, kt, attnBlock, o.Dim, attnBlock, heads, o.Dim, n, false)
		if o.Block > 0 {
			t.raise(b, products, p, max(p, first), p+n)
			continue
		}
		rectify(products)
		for r := range b.rows {
			weights := t.weights[(b.row+r)*o.Heads:][:o.Heads]
			t.multiply(sums, weights, products[r*o.Heads*attnBlock:], attnBlock, o.Heads, attnBlock, 1, o.Heads, n, false)
			copy(t.scores[b.at+r*t.stride+p:][:n], sums)
		}
	}
}

// raise takes the products of the positions from first to end, of which those of position p come
// first, into the scores of their blocks. A block begins with its first position.
func (t *chooseTask) raise(b *chooseBand, products []float32, p, first, end int) {
	for i := range b.rows * t.op.Heads {
		scores := t.scores[b.at+i*t.stride:]
		end := min(end, b.pos()+i/t.op.Heads+1)
		for j := first; j < end; {
			n := min(t.block-j%t.block, end-j)
			most, k := largest(products[i*attnBlock+j-p:][:n]), j/t.block
			if j%t.block == 0 || most > scores[k] || most != most {
				scores[k] = most
			}
			j += n
		}
	}
}

// largest returns the largest of at least one number, or NaN if one of them is.
func largest(x []float32) float32 {
	most := x[0]
	for _, v := range x[1:] {
		if v > most || v != v {
			most = v
		}
	}
	return most
}

// rectify replaces what is below 0 by 0, without a branch that nobody could predict. NaN stays.
func rectify(x []float32) {
	for i, v := range x {
		x[i] = (v + math.Float32frombits(math.Float32bits(v)&^(1<<31))) * 0.5
	}
}

// chooseBand chooses for a band's rows.
func (t *chooseTask) chooseBand(b *chooseBand) {
	k, lists := t.op.K, t.op.Lists()
	for i := range b.rows * lists {
		seen := (b.pos()+i/lists)/t.block + 1
		dst := t.chosen[(b.row*lists+i)*k:][:min(k, seen)]
		given := min(t.op.Local, seen) // the last ones, in any case
		chooseEntries(dst[:len(dst)-given], t.scores[b.at+i*t.stride:][:seen-given])
		for j := range given {
			dst[len(dst)-given+j] = int32(seen - given + j)
		}
	}
}

// chooseEntries writes which scores are the largest, as many as dst has room for, rising.
func chooseEntries(dst []int32, scores []float32) {
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
	t.vectors, t.op, t.block = x.vectors, o, max(o.Block, 1)
	t.q, t.chosen = floatsAt(o.Q, rows*o.Heads*o.Dim), intsAt(o.Chosen, rows*o.Lists()*o.K)
	if o.Block == 0 {
		t.weights = floatsAt(o.Weights, rows*o.Heads)
	}
	for i := range o.Segments {
		s := &o.Segments[i]
		for r := 0; r < s.Rows; r += chooseRows {
			b := chooseBand{seg: s, row: s.Row + r, rows: min(chooseRows, s.Rows-r)}
			if len(t.bands) > 0 && (t.rows+b.rows)*o.Lists()*max(t.stride, t.entries(&b)) > chooseScores {
				x.chooseBands(t)
			}
			t.bands, t.rows, t.stride = append(t.bands, b), t.rows+b.rows, max(t.stride, t.entries(&b))
		}
	}
	x.chooseBands(t)
	t.op, t.q, t.weights, t.chosen = nil, nil, nil, nil
}

// chooseBands scores what the bands gathered so far see and chooses. It takes the bands away.
func (x *executor) chooseBands(t *chooseTask) {
	const keyNS = 8 // to choose among scores, for each
	o, floats, ns, keys := t.op, 0, 0, 0
	for i := range t.bands {
		b := &t.bands[i]
		b.at = floats
		floats += b.rows * o.Lists() * t.stride
		ns += x.vectors.multiplying(b.rows*(b.last()+1)*o.Heads*(o.Dim+2)) + x.vectors.moving((b.last()+1)*o.Dim)
		keys += b.rows * o.Lists() * t.entries(b)
	}
	grow(&t.scores, floats)
	t.scores, t.spans = t.scores[:cap(t.scores)], chunks(t.stride, t.span())
	x.parallel(t, len(t.bands)*t.spans, ns)
	t.spans = 0
	x.parallel(t, len(t.bands), keyNS*keys)
	clear(t.bands)
	t.bands, t.rows, t.stride = t.bands[:0], 0, 0
}
