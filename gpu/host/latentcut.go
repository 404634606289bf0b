package host

import "github.com/moeflux/moeflux-actor/gpu"

// latentSpans divides the positions of few heads among many threads. Chunks expand a span for all
// rows and keep its sums apart; afterwards these are added in the order of positions, as a thread
// that takes the whole head adds them. So bits do not depend on the division. Spans are taken in
// rounds, since their sums take up more memory than the expanded keys and values.
type latentSpans struct {
	most    int       // spans of a round
	count   int       // of this one; 0: a chunk is a whole head
	first   int       // the round's first span
	merging bool      // chunks are heads, whose spans are done
	last    bool      // the round is the last one
	rows    int       // of the operation
	sums    []float32 // [heads, 1+most, rows·(2+valueDim)]: a head's totals, then its spans of the round
}

// latentRound returns how many of a head's spans are a round, or 0 where heads are enough chunks
// for the threads.
func latentRound(heads, spans, threads, ns int) int {
	if inline(threads, ns) || heads >= 2*threads || spans == 1 {
		return 0
	}
	const each = 4 // chunks for a thread
	return min(spans, chunks(each*threads, heads))
}

// latentFloats bounds the sums of a round's spans, which stay in memory: 16 MiB, unless one span of
// each head has more. Rounds are shorter then.
const latentFloats = 4 << 20

// runLatentSpans runs t, which takes about ns nanoseconds, in rounds of up to count spans.
func (x *executor) runLatentSpans(t *latentTask, count, rows, last, ns int) {
	heads, all := t.op.Heads, chunks(last, attnSpan)
	count = min(count, max(1, latentFloats/(heads*rows*(2+t.op.ValueDim))))
	sums := grow(&x.partial, heads*(1+count)*rows*(2+t.op.ValueDim))
	for first := 0; first < all; first += count {
		t.spans = latentSpans{most: count, count: min(count, all-first), first: first, rows: rows, sums: sums, last: first+count >= all}
		x.parallel(t, heads*t.spans.count, ns*t.spans.count/all)
		t.spans.merging = true
		x.parallel(t, heads, x.vectors.moving(heads*t.spans.count*rows*2*t.op.ValueDim))
	}
}

// doSpan runs a chunk of a round: a span of a head, or the addition of a head's spans.
func (t *latentTask) doSpan(s *scratch, chunk int) {
	c := &t.spans
	h, span := chunk, 0
	var b latentHead
	if !c.merging {
		h, span = chunk/c.count, c.first+chunk%c.count
		b = t.load(s, h)
	}
	for i := range t.op.Segments {
		seg := &t.op.Segments[i]
		for r := 0; r < seg.Rows; r += latentRows {
			rows := min(latentRows, seg.Rows-r)
			switch {
			case c.merging:
				t.merge(seg, h, r, rows)
			case span*attnSpan < seg.Pos+r+rows:
				a := t.queries(s, seg, h, r, rows)
				a.spanStats, a.spanAcc = t.sums(h, span, seg.Row+r, rows)
				a.stats, a.acc = a.spanStats, a.spanAcc
				a.span(span * attnSpan)
				s.cache = seg.In(&t.op.Cache)
				t.weighSpan(&a, &b, &s.cache, span*attnSpan)
			}
		}
	}
}

// merge adds the round's spans to the totals of rows of a segment, and writes what the last round
// gives.
func (t *latentTask) merge(seg *gpu.KVSegment, h, r, rows int) {
	c := &t.spans
	a := queries{vectors: t.vectors, rows: rows, heads: 1, pos: seg.Pos + r, valueDim: t.op.ValueDim}
	a.stats, a.acc = t.sums(h, 0, seg.Row+r, rows)
	for span := max(1, c.first); span < c.first+c.count && span*attnSpan <= a.last(); span++ {
		a.spanStats, a.spanAcc = t.sums(h, span, seg.Row+r, rows)
		a.addSpan(max(0, span*attnSpan-a.pos))
	}
	if c.last {
		t.write(&a, seg.Row+r, h)
	}
}

// sums returns where the sums of a head's span are, for rows of the operation. The first span sums
// into the totals.
func (t *latentTask) sums(h, span, row, rows int) (stats, acc []float32) {
	c, vd := &t.spans, t.op.ValueDim
	slot := 0
	if span > 0 {
		slot = 1 + span - c.first
	}
	each := c.rows * (2 + vd)
	part := c.sums[(h*(1+c.most)+slot)*each:][:each]
	return part[2*row:][:2*rows], part[2*c.rows+row*vd:][:rows*vd]
}
