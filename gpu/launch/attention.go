package launch

import (
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/gpu"
)

type attentionRow struct{ row, pos, pages, pageRows uint32 }

// attentionTile is some rows of a sequence that follow one another.
type attentionTile struct{ entry, rows uint32 }

type attentionParams struct {
	heads, group, blocks, qRow, qHead, kvDim, vDim, kvGroup uint32
	per, parts, together, groups, window                    uint32
	scale, valueScale                                       float32
	sinks, budget, block                                    uint32
	// bytes from a page's beginning
	keys, values uint64
}

// Positions are added in chunks, and chunks in spans: see cache.metal.
const (
	attentionChunk = 32
	attentionSpan  = 16 // chunks
	mergedChannels = 128
	// With more spans than this each span of a row is a threadgroup, however few threadgroups that
	// makes, see limits.
	mostSpans = 24
	// maxParts bounds the scratch memory that the sums of parts take, in float32.
	maxParts = 16 << 20
	// tileQueries is the queries of a tile, and leastTiled the rows of a sequence from which on
	// tiles are used.
	tileQueries, leastTiled = 32, 6
)

func (x *encoder) attention(o *gpu.Attention) {
	x.attend(o, o, place{view: o.Q}, place{view: o.Y}, 0)
}

// attend is the attention that o describes, but from q to y, for op. Scratch memory below at is in
// use.
func (x *encoder) attend(op gpu.Op, o *gpu.Attention, q, y place, at int) {
	_, latent := op.(*gpu.LatentAttention)
	valueDim := or(o.ValueDim, o.HeadDim)
	a := attending{encoder: x, op: op, Attention: o, q: q, y: y, at: at, valueDim: valueDim, format: cacheFormat(o), keysOnly: latent}
	a.set, a.pages = x.pages.find(o.Segments, o.Cache.PageRows)
	a.wide = widePages(o, valueDim, a.set) && a.wideQueries()
	few, many := a.rows()
	a.wantLimbs(len(few) + len(many))
	a.few(few)
	a.many(many)
	a.haveLimbs()
}

// attending is one attention that is encoded.
type attending struct {
	*encoder
	*gpu.Attention
	op       gpu.Op
	q, y     place
	at       int // scratch memory below is in use
	valueDim int
	wide     bool // 4 channels of the cache and of the queries can be loaded at once
	format   int  // KV8
	keysOnly bool // keys are the values, too
	set      *pageSet
	pages    int       // its index
	limbs    limbsMade // of the result, which attention_merge makes
	merged   int       // rows
}

// wantLimbs has limbs of all n rows made if the next operation multiplies them.
func (a *attending) wantLimbs(n int) {
	for i, row := 0, 0; i < len(a.Segments); i++ {
		if a.Segments[i].Row != row {
			return
		}
		row += a.Segments[i].Rows
	}
	a.limbs = a.wantedLimbs(a.y.view, n, a.Heads*a.valueDim, 1, &a.at)
	for i := range a.limbs {
		if m := &a.limbs[i]; m.group > 0 && a.valueDim%m.group != 0 {
			*m = madeLimbs{}
		}
	}
}

// haveLimbs notes that limbs are there: of rows that were merged.
func (a *attending) haveLimbs() {
	for i, m := range a.limbs {
		if m.group > 0 && a.merged == m.rows.rows {
			a.made[i] = m
		}
	}
}

// cacheFormat is the KV8 of the kernels.
func cacheFormat(o *gpu.Attention) int {
	switch kv := &o.Cache; {
	case kv.Format != gpu.KVInt8:
		return 0
	case kv.Group == o.HeadDim:
		return 2
	}
	return 1
}

// wideQueries reports whether 4 channels of the queries can be loaded at once.
func (a *attending) wideQueries() bool {
	return a.q.aligned16() && a.QRowStride%4 == 0 && (a.QHeadStride%4 == 0 || a.Heads == 1)
}

// tileable reports whether there is a kernel for tiles of rows.
func (a *attending) tileable() bool {
	return a.wide && a.ValueDim == 0 && a.Budget == 0 && a.Cache.VDim == 0 &&
		(a.HeadDim == 64 || a.HeadDim == 128 || a.HeadDim == 256)
}

// tileThreads is the threads of a tile, see prefill.metal.
func (a *attending) tileThreads() int {
	if a.HeadDim == 256 {
		return 256
	}
	return 128
}

// fewThreads is the threads that have a part of a row, see attention.metal.
func (a *attending) fewThreads() int {
	if a.HeadDim <= 128 && a.valueDim <= 128 {
		return 128
	}
	return 256
}

// params are those of a launch whose rows have at most parts parts of per chunks, with heads query
// heads to a threadgroup.
func (a *attending) params(heads, per, parts int) attentionParams {
	kv := &a.Cache
	group := a.Heads / a.KVHeads
	keys, values := uint64(kv.KOffset), uint64(kv.VOffset)
	if a.keysOnly {
		values = keys
	}
	window := uint32(math.MaxUint32)
	if a.Window > 0 {
		window = uint32(min(a.Window, math.MaxInt32))
	}
	valueScale := a.ValueScale
	if valueScale == 0 {
		valueScale = 1
	}
	return attentionParams{uint32(a.Heads), uint32(group), uint32(ceil(group, heads)), uint32(a.QRowStride), uint32(a.QHeadStride),
		uint32(kv.Dim), uint32(or(kv.VDim, kv.Dim)), uint32(kv.Group),
		uint32(per), uint32(parts), 1, uint32(parts), window, a.Scale, valueScale,
		uint32(flag(!a.Sinks.IsZero())), uint32(a.Budget), uint32(a.Block), keys, values}
}

// chosenBy is the CHOSEN of the kernels.
func (a *attending) chosenBy() int { return flag(a.Budget > 0) + flag(a.Block > 0) }

// sinks returns where the sinks are, or, without any, a place that no kernel looks at.
func (a *attending) sinks() place {
	if a.Sinks.IsZero() {
		return a.q
	}
	return place{view: a.Sinks}
}

// blockHeads returns how many query heads of a key-value head a threadgroup takes: all, up to 8.
func (a *attending) blockHeads() int {
	most := 8
	if a.HeadDim > 384 { // their queries would not fit threadgroup memory
		most = 4
	}
	n := 1
	for n < most && n < a.Heads/a.KVHeads {
		n *= 2
	}
	return n
}

// partsOf returns how many parts of per chunks, at most, the rows have.
func (a *attending) partsOf(rows []attentionRow, per int) int {
	most, size := 0, attentionChunk*per
	for i := range rows {
		pos := int(rows[i].pos)
		most = max(most, pos/size-gpu.FirstOf(pos, a.Window)/size)
	}
	return most + 1
}

// chunksOf returns how many chunks the rows have together, and at most.
func (a *attending) chunksOf(rows []attentionRow) (all, most int) {
	for i := range rows {
		pos := int(rows[i].pos)
		n := pos/attentionChunk - gpu.FirstOf(pos, a.Window)/attentionChunk + 1
		all, most = all+n, max(most, n)
	}
	return all, most
}

// fewSpans reports whether spans of the rows would leave processors idle, where each makes so many
// threadgroups: there are few of them, or they hold as many chunks as few that are full. Where rows
// are of very different lengths, the latter would make a threadgroup of each chunk that most rows
// do not have.
func (a *attending) fewSpans(rows []attentionRow, parts, each int) bool {
	enough := a.d.limits.enoughSpans
	if len(rows)*parts*each < enough {
		return true
	}
	all, most := a.chunksOf(rows)
	return all*each < enough*attentionSpan && len(rows)*most <= 2*all
}

// groupsOf returns how many threadgroups the chunks of a row are divided among. If there are more
// than twice as many chunks as threadgroups run at once, each takes several, so that all run at
// once.
func (a *attending) groupsOf(rows []attentionRow, parts, each int) int {
	all, _ := a.chunksOf(rows)
	threads := all * each * a.fewThreads()
	if threads <= 2*a.d.limits.attending {
		return parts
	}
	return ceil(parts, ceil(threads, a.d.limits.attending))
}

// spansOf returns over how many spans, at most, the rows of a tile look.
func (a *attending) spansOf(rows []attentionRow, tiles []attentionTile) int {
	const size = attentionChunk * attentionSpan
	most := 0
	for _, t := range tiles {
		first, last := int(rows[t.entry].pos), int(rows[t.entry+t.rows-1].pos)
		most = max(most, last/size-gpu.FirstOf(first, a.Window)/size)
	}
	return most + 1
}

// reserveParts takes scratch memory for the parts of n rows. Where there is one each it is not
// looked at. What lies first has room for a power of two of parts: the places stay while a sequence
// grows, so that launches of one token are those of the next.
func (a *attending) reserveParts(n, parts int) (sums, ml place) {
	if parts == 1 {
		n = 0
	}
	mark, room := a.at, 1
	for room < parts {
		room *= 2
	}
	ml = a.reserve(&mark, max(1, n*room*a.Heads*2))
	return a.reserve(&mark, max(1, n*parts*a.Heads*a.valueDim)), ml
}

// few encodes rows that have keys and values for themselves.
func (a *attending) few(rows []attentionRow) {
	if len(rows) == 0 {
		return
	}
	heads := a.blockHeads()
	each := func() int { return a.KVHeads * ceil(a.Heads/a.KVHeads, heads) } // threadgroups of a part
	per, parts := attentionSpan, a.partsOf(rows, attentionSpan)
	if parts <= mostSpans && a.fewSpans(rows, parts, each()) {
		per, parts = 1, a.partsOf(rows, 1)
	}
	for heads > 1 && len(rows)*parts*each() < a.d.limits.fewGroups {
		heads /= 2
	}
	p := a.params(heads, per, parts)
	if per == 1 {
		groups := a.groupsOf(rows, parts, each())
		p.groups, p.together = uint32(groups), uint32(ceil(parts, groups))
	}
	together := len(rows)
	if parts > 1 {
		together = min(together, max(1, maxParts/(parts*a.Heads*a.valueDim)))
	}
	for first := 0; first < len(rows); first += together {
		n := min(together, len(rows)-first)
		list := table(a.encoder, rows[first:first+n])
		sums, ml := a.reserveParts(n, parts)
		a.begin(a.op, "attention", a.HeadDim, a.valueDim, heads, flag(a.wide), a.format, a.chosenBy())
		a.places(a.q)
		a.tableAt(list)
		a.pageTable(a.pages)
		a.places(a.y, sums, ml, a.sinks())
		a.views(a.Chosen)
		constants(a.encoder, p)
		a.end(a.fewThreads(), n*int(p.groups), a.KVHeads*int(p.blocks))
		a.merge(list, n, p, sums, ml)
	}
}

// many encodes rows of which many are of one sequence.
func (a *attending) many(rows []attentionRow) {
	if len(rows) == 0 {
		return
	}
	heads := a.blockHeads()
	tileRows := tileQueries / heads
	parts := a.partsOf(rows, attentionSpan)
	p := a.params(heads, attentionSpan, parts)
	together := len(rows)
	if parts > 1 {
		together = min(together, max(tileRows, maxParts/(parts*a.Heads*a.valueDim)))
	}
	for first := 0; first < len(rows); first += together {
		n := min(together, len(rows)-first)
		some := rows[first : first+n]
		list := table(a.encoder, some)
		tiles := table(a.encoder, a.cut(some, tileRows))
		sums, ml := a.reserveParts(n, parts)
		a.begin(a.op, "attention_tiles", a.HeadDim, heads, a.format)
		a.places(a.q)
		a.tableAt(list)
		a.pageTable(a.pages)
		a.tableAt(tiles)
		a.places(a.y, sums, ml, a.sinks())
		constants(a.encoder, p)
		a.end(a.tileThreads(), a.KVHeads*int(p.blocks), len(a.lists.tiles), a.spansOf(some, a.lists.tiles))
		a.merge(list, n, p, sums, ml)
	}
}

// cut puts rows into tiles of at most n rows of a sequence. Those of the last rows, which look back
// farthest, come first: a processor that is done early takes a short one next.
func (a *attending) cut(rows []attentionRow, n int) []attentionTile {
	l := &a.lists
	l.tiles = l.tiles[:0]
	for i := 0; i < len(rows); {
		end := i + 1
		for end < len(rows) && end < i+n && rows[end].pages == rows[i].pages {
			end++
		}
		l.tiles = append(l.tiles, attentionTile{uint32(i), uint32(end - i)})
		i = end
	}
	slices.Reverse(l.tiles)
	return l.tiles
}

// merge adds the parts of n rows of a table, where they have several.
func (a *attending) merge(list, n int, p attentionParams, sums, ml place) {
	if p.parts == 1 {
		return
	}
	spans, threads := p.per > 1, mergedChannels
	if !spans {
		threads *= min(4, ceil(int(p.parts), attentionSpan)) // a channel's share the spans
	}
	a.begin(a.op, "attention_merge", a.HeadDim, a.valueDim, flag(spans), a.limbs[0].group, a.limbs[1].group)
	a.tableAt(list)
	a.places(sums, ml, a.y)
	a.bindLimbs(&a.limbs, a.y)
	constants(a.encoder, p)
	a.end(threads, a.Heads*ceil(a.valueDim, mergedChannels), n)
	a.merged += n
}

// pageTable binds a page set.
func (x *encoder) pageTable(set int) {
	x.args = append(x.args, argument{source: fromPages, offset: set})
}

// rows lists the rows of all segments: first those of segments that have few rows, then, if tiles
// are to be had, those of the others.
func (a *attending) rows() (few, many []attentionRow) {
	l := &a.lists
	l.rows = l.rows[:0]
	tiles := a.tileable()
	add := func(i int) {
		s := &a.Segments[i]
		first := uint32(a.set.sequences[i].first)
		for r := range s.Rows {
			pos := a.Attended(s.Pos+r) - 1 // those of a row that chooses are counted in its list
			l.rows = append(l.rows, attentionRow{row: uint32(s.Row + r), pos: uint32(pos), pages: first, pageRows: uint32(a.Cache.PageRows)})
		}
	}
	for i := range a.Segments {
		if !tiles || a.Segments[i].Rows < leastTiled {
			add(i)
		}
	}
	n := len(l.rows)
	for i := range a.Segments {
		if tiles && a.Segments[i].Rows >= leastTiled {
			add(i)
		}
	}
	return l.rows[:n], l.rows[n:]
}

// widePages reports whether 4 channels of the cache can be loaded at once.
func widePages(o *gpu.Attention, valueDim int, set *pageSet) bool {
	if o.HeadDim%4 != 0 || valueDim%4 != 0 {
		return false
	}
	if kv := &o.Cache; kv.Format == gpu.KVInt8 { // 4 bytes, which pages are aligned to
		return kv.Group%4 == 0
	}
	kv := &o.Cache
	return kv.VDim%4 == 0 && kv.KOffset%16 == 0 && kv.VOffset%16 == 0 && set.offsets%16 == 0
}
