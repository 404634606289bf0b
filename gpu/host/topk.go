package host

import (
	"math"
	"sort"
	"sync/atomic"

	"github.com/moeflux/moeflux-actor/gpu"
)

// topKPart is how many logits a chunk takes. The sums of a row's parts are added in order.
const topKPart = 8192

// choice is a logit and its index.
type choice struct {
	value float32
	index int32
}

// before says whether a comes before b among the largest.
func (a choice) before(b choice) bool {
	if nan := a.value != a.value; nan || b.value != b.value {
		return nan && (b.value == b.value || a.index < b.index)
	}
	return a.value > b.value || a.value == b.value && a.index < b.index
}

// choices are the largest found so far, in order, at most cap of them.
type choices []choice

// take inserts c where it belongs.
func (l choices) take(c choice) choices {
	n := len(l)
	switch {
	case n < cap(l):
		l = l[:n+1]
	case c.before(l[n-1]):
		n--
	default:
		return l
	}
	i := sort.Search(n, func(i int) bool { return c.before(l[i]) })
	copy(l[i+1:], l[i:n])
	l[i] = c
	return l
}

// full reports whether there is no room for more.
func (l choices) full() bool { return len(l) == cap(l) }

// rowFloor is what all threads know of a row: none of its largest logits is less.
type rowFloor struct{ bits atomic.Uint32 }

func (b *rowFloor) least() float32 { return math.Float32frombits(b.bits.Load()) }

func (b *rowFloor) reset() { b.bits.Store(math.Float32bits(float32(math.Inf(-1)))) }

// raise raises it to v, unless it is higher or v is NaN.
func (b *rowFloor) raise(v float32) {
	for {
		old := b.bits.Load()
		if !(v > math.Float32frombits(old)) || b.bits.CompareAndSwap(old, math.Float32bits(v)) {
			return
		}
	}
}

// topKTask finds the largest logits of rows; a chunk is topKPart logits of one row.
type topKTask struct {
	*vectors
	logits   []float32
	vocab, k int
	parts    int        // of a row
	best     []choice   // [rows, parts, k]
	n        []int      // [rows, parts]: how many in best
	stats    []float32  // [rows, parts, 2]: the largest, and the sum of e^(logit - largest)
	floors   []rowFloor // [rows], raised by each part that is done
	merged   []choice   // [k]
}

func (t *topKTask) do(s *scratch, chunk int) {
	row, first := chunk/t.parts, chunk%t.parts*topKPart
	x := t.logits[row*t.vocab : (row+1)*t.vocab][first:min(first+topKPart, t.vocab)]
	best := choices(t.best[chunk*t.k : chunk*t.k : (chunk+1)*t.k])
	least := t.floors[row].least()
	for i, v := range x {
		if v < least {
			continue
		}
		if best = best.take(choice{v, int32(first + i)}); best.full() && best[t.k-1].value > least {
			least = best[t.k-1].value
		}
	}
	t.n[chunk] = len(best)
	if best.full() {
		t.floors[row].raise(best[t.k-1].value)
	}
	mem := aligned(grow(&s.a, lineFloats+attnBlock+2*lineFloats))
	block, acc := floats(&mem, attnBlock), floats(&mem, lineFloats)
	clear(acc)
	stats := t.stats[2*chunk : 2*chunk+2]
	stats[0], stats[1] = lowestScore, 0
	for len(x) > 0 {
		n := copy(block, x)
		for i := n; i < attnBlock; i++ {
			block[i] = float32(math.Inf(-1))
		}
		t.softmax(block, stats, acc, lineFloats)
		x = x[n:]
	}
}

func (x *executor) runTopK(o *gpu.TopK) {
	t := &x.topK
	t.vectors, t.vocab, t.k, t.parts = x.vectors, o.Vocab, o.K, chunks(o.Vocab, topKPart)
	t.logits = floatsAt(o.Logits, o.Rows*o.Vocab)
	all := o.Rows * t.parts
	grow(&t.best, all*o.K)
	grow(&t.n, all)
	grow(&t.stats, 2*all)
	for i := range grow(&t.floors, o.Rows) {
		t.floors[i].reset()
	}
	t.best, t.n, t.stats = t.best[:cap(t.best)], t.n[:cap(t.n)], t.stats[:cap(t.stats)]
	x.parallel(t, all, x.vectors.exponentials(o.Rows*o.Vocab)+o.Rows*o.Vocab)
	values, indices, stats := floatsAt(o.Values, o.Rows*o.K), floatsAt(o.Indices, o.Rows*o.K), floatsAt(o.Stats, 2*o.Rows)
	for r := range o.Rows {
		top, sum := t.merge(r)
		stats[2*r], stats[2*r+1] = top, float32(math.Log(sum))
		for i, c := range t.merged {
			values[r*o.K+i], indices[r*o.K+i] = c.value, math.Float32frombits(uint32(c.index))
		}
	}
	t.logits = nil
}

// merge puts a row's largest logits into t.merged. It returns the largest, and the sum of e^(logit
// - largest).
func (t *topKTask) merge(row int) (top float32, sum float64) {
	list := choices(grow(&t.merged, t.k)[:0:t.k])
	top = lowestScore
	for p := row * t.parts; p < (row+1)*t.parts; p++ {
		for _, c := range t.best[p*t.k : p*t.k+t.n[p]] {
			if list.full() && !c.before(list[t.k-1]) {
				break // nor are those after it
			}
			list = list.take(c)
		}
		top = max(top, t.stats[2*p])
	}
	for p := row * t.parts; p < (row+1)*t.parts; p++ {
		sum += float64(t.stats[2*p+1]) * math.Exp(float64(t.stats[2*p])-float64(top))
	}
	t.merged = list
	return top, sum
}
