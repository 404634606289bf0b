package host

import (
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

// spanCut divides the spans of tiles into chunks. If there is one tile, which has all key-value
// heads, each thread takes the same number of successive spans, and what is left over is divided
// head by head.
type spanCut struct {
	count   int // spans of a tile, at most
	heads   int // key-value heads of a tile
	threads int
	apart   bool // one tile, divided into spans and heads
	each    int  // spans of each thread, if apart
	chunks  int
}

// spanChunk is a span of a tile: all its key-value heads, or one of them.
type spanChunk struct {
	tile, span int
	until      int // the span before which the thread stops
	alone      bool
	head       int
}

// cutSpans divides tiles of heads key-value heads, the longest of which looks at last positions.
func cutSpans(tiles, heads, last, threads int) spanCut {
	c := spanCut{count: chunks(last, attnSpan), heads: heads, threads: threads}
	c.chunks = tiles * c.count
	if tiles == 1 && heads > 1 {
		c.apart, c.each = true, last/attnSpan/threads
		// Or the threads take all spans, the last one short, if that takes no longer: reading one
		// head's parts of rows takes half as long again.
		all, whole := c.count/threads, c.each*threads*attnSpan
		if c.count%threads == 0 && 2*all*threads*attnSpan <= 2*whole+3*(last-whole) {
			c.each = all
		}
		c.chunks = c.each*threads + (c.count-c.each*threads)*heads
	}
	return c
}

// chunk returns the i-th chunk. The pool gives thread k those from k·chunks/threads on.
func (c *spanCut) chunk(i int) spanChunk {
	if !c.apart {
		return spanChunk{tile: i / c.count, span: i % c.count, until: c.count}
	}
	k := ((i+1)*c.threads - 1) / c.chunks
	first := k * c.chunks / c.threads
	if i-first < c.each {
		return spanChunk{span: k*c.each + i - first, until: (k + 1) * c.each}
	}
	piece := i - (k+1)*c.each
	span := c.threads*c.each + piece/c.heads
	return spanChunk{span: span, until: span + 1, alone: true, head: piece % c.heads}
}

func (x *executor) runAttention(o *gpu.Attention) {
	t := &x.attn
	*t = attnTask{vectors: x.vectors, qRowStride: o.QRowStride, qHeadStride: o.QHeadStride, heads: o.Heads, kvHeads: o.KVHeads, dim: o.HeadDim,
		valueDim: or(o.ValueDim, o.HeadDim), window: o.Window, scale: o.Scale, valueScale: 1, segments: o.Segments, op: o}
	if o.ValueScale != 0 {
		t.valueScale = o.ValueScale
	}
	if kv := &o.Cache; x.rounds && kv.Format == gpu.KVInt8 && kv.Group%codeColumns == 0 {
		t.group, t.kernels = kv.Group, x.kernels
	}
	rows, count, longest, last, ns := 0, 0, 0, 0, 0
	for i := range o.Segments {
		s := &o.Segments[i]
		rows = max(rows, s.Row+s.Rows)
		count += s.Rows
		longest = max(longest, s.Rows)
		seen := o.Attended(s.Pos + s.Rows - 1) // by the last row, and the positions that are read
		read := seen
		if o.Budget > 0 {
			read = seen * s.Rows
		}
		if o.Window > 0 {
			seen, read = min(seen, o.Window), min(read, o.Window+s.Rows)
		}
		last = max(last, seen)
		ns += x.vectors.multiplying(seen*s.Rows*o.Heads*(o.HeadDim+t.valueDim)) + x.vectors.moving(read*o.KVHeads*o.HeadDim*2)
	}
	t.q = floatsAt(o.Q, (rows-1)*o.QRowStride+(o.Heads-1)*o.QHeadStride+o.HeadDim)
	t.y = floatsAt(o.Y, rows*o.Heads*t.valueDim)
	if !o.Sinks.IsZero() {
		t.sinks = floatsAt(o.Sinks, o.Heads)
	}
	if o.Budget > 0 {
		t.chosen, t.budget = intsAt(o.Chosen, rows*o.KVHeads*o.Budget), o.Budget
	}
	if !t.cutWide(x, longest, last, ns) {
		t.cut(x, count, last, ns)
	}
	if t.phase == attnSpans {
		t.partial = grow(&x.partial, t.tiles*t.spans.count*t.partSize())
		x.parallel(t, t.spans.chunks, ns)
		t.phase = attnMerge
		t.eachMerge = chunks(t.perRow*t.perHead, chunks(x.threads, t.tiles*t.perKV))
		x.parallel(t, t.tiles*t.perKV*t.merges(), t.mergeNS())
	} else {
		x.parallel(t, t.tiles, ns)
	}
	*t = attnTask{}
}

// merges returns how many chunks add the spans of a tile's key-value head.
func (t *attnTask) merges() int { return chunks(t.perRow*t.perHead, t.eachMerge) }

// mergeNS is about how long it takes to add up spans.
func (t *attnTask) mergeNS() int {
	const exponential = 10
	return t.tiles * t.spans.count * t.perKV * t.perRow * t.perHead * (exponential + t.moving(2*t.valueDim))
}

// cutWide chooses tiles with all heads if segments have few rows, the longest having longest of
// them, and if that leaves enough work for all threads.
func (t *attnTask) cutWide(x *executor, rows, last, ns int) bool {
	threads, group := x.threads, t.heads/t.kvHeads
	if t.kvHeads == 1 || rows*group >= packedValues || t.valueDim != t.dim || t.chosen != nil {
		return false
	}
	spread := !x.inline(ns)
	tiles := len(t.segments)
	if t.window > 0 && spread && tiles < x.spread() {
		return false
	}
	cut := cutSpans(tiles, t.kvHeads, last, threads)
	if spread && (tiles == 1 && cut.each == 0 || tiles*(last/attnSpan) < threads && tiles > 1) {
		return false
	}
	t.perKV, t.perHead, t.perRow = t.kvHeads, group, rows
	t.count(group)
	if spread && tiles < x.spread() {
		t.phase, t.spans = attnSpans, cut
	}
	return true
}

// leastShare is how many queries a tile keeps together although it takes long.
const leastShare = 64

// cut chooses tiles for work that takes ns nanoseconds: as large as the cache holds, or smaller
// where some threads would get none.
func (t *attnTask) cut(x *executor, rows, last, ns int) {
	group := t.heads / t.kvHeads
	most := max(8, tileFloats/(t.dim+2*t.valueDim))
	t.perKV = 1
	t.perHead = min(group, most)
	t.perRow = max(1, most/t.perHead)
	if t.chosen != nil { // rows have nothing in common
		t.perRow = 1
	}
	threads := x.threads
	spread := !x.inline(ns)
	if spread {
		t.perRow = min(t.perRow, max(1, rows*t.kvHeads/x.spread()))
	}
	t.count(group)
	if long := ns / chunkNS; t.tiles < long { // but a tile should share a block among some queries
		t.perRow = max(min(t.perRow, leastShare/t.perHead), t.perRow*t.tiles/long, 1)
		t.count(group)
	}
	if !spread || t.tiles >= 2*threads {
		return
	}
	if t.window > 0 { // too short for its spans to be worth dividing
		last = min(last, attnSpan)
	}
	t.divideHeads(group, last, threads)
	if last > attnSpan {
		t.phase, t.spans = attnSpans, cutSpans(t.tiles, 1, last, threads)
	}
}

// divideHeads divides the query heads of a tile, which looks at last positions, among several tiles
// if the threads are done sooner then, although each tile reads the keys and values.
func (t *attnTask) divideHeads(group, last, threads int) {
	const reading = 2 // takes as long as to compute with so many heads
	per, least := t.perHead, math.MaxInt
	spans := max(1, (last+attnSpan/2)/attnSpan) // less than half of one delays nobody
	for parts := 1; parts <= t.perHead; parts *= 2 {
		heads := chunks(t.perHead, parts)
		if took := chunks(t.tiles*parts*spans, threads) * (reading + heads); took < least {
			per, least = heads, took
		}
	}
	t.perHead = per
	t.count(group)
}

func (t *attnTask) count(group int) {
	t.parts, t.tiles = chunks(group, t.perHead), 0
	for i := range t.segments {
		t.tiles += chunks(t.segments[i].Rows, t.perRow) * t.kvHeads / t.perKV * t.parts
	}
}
