package launch

import (
	"github.com/moeflux/moeflux-actor/gpu"
)

type page struct{ k, v uint64 }

type attentionRow struct{ row, pos, pages, pageRows uint32 }

type attentionParams struct {
	heads, group, blocks, qRow, qHead, kvDim, kvGroup, chunks, sharedValues uint32
	scale                                                                   float32
}

const (
	attentionBlock   = 8   // query heads of a threadgroup
	attentionThreads = 128 // of a threadgroup
	// attentionChunk is how many positions a chunk has; with one key-value head for many query heads a chunk's sums of values are many, and
	// longer chunks make fewer of them.
	attentionChunk, sharedChunk = 64, 256
	// Fewer threadgroups than this leave a device idle: then a row's chunks are spread over them.
	fewThreadgroups = 1024
	// maxParts bounds the scratch memory that chunks' sums take, in float32.
	maxParts = 16 << 20
)

func (x *encoder) attention(o *gpu.Attention) {
	x.attend(o, o, place{view: o.Q}, place{view: o.Y}, 0)
}

// attend is the attention that o describes, whose Q and Y are not looked at, for op. Scratch memory below at is in use.
func (x *encoder) attend(op gpu.Op, o *gpu.Attention, q, y place, at int) {
	chunk := attentionChunk
	if o.ValueDim != 0 {
		chunk = sharedChunk
	}
	_, latent := op.(*gpu.LatentAttention)
	most := x.attentionTables(o.Segments, latent)
	rows := x.lists.rows
	pages := table(x, x.lists.pages)
	chunks := most/chunk + 1
	group := o.Heads / o.KVHeads
	blocks := ceil(group, attentionBlock)
	perRow := o.KVHeads * blocks
	split := chunks > 1 && len(rows)*perRow < fewThreadgroups
	valueDim := or(o.ValueDim, o.HeadDim)
	together := len(rows)
	if split {
		together = min(together, max(1, maxParts/(chunks*o.Heads*valueDim)))
	}
	kv := &o.Segments[0].KV // all are of one width and format
	p := attentionParams{uint32(o.Heads), uint32(group), uint32(blocks), uint32(o.QRowStride), uint32(o.QHeadStride),
		uint32(kv.Dim), uint32(kv.Group), uint32(chunks), uint32(flag(o.ValueDim != 0)), o.Scale}
	wide := flag(widePages(o, valueDim))
	for first := 0; first < len(rows); first += together {
		n := min(together, len(rows)-first)
		list := table(x, rows[first:first+n])
		mark := at
		var parts, ml place
		if split {
			parts = x.reserve(&mark, n*chunks*o.Heads*valueDim)
			ml = x.reserve(&mark, n*chunks*o.Heads*2)
		} else { // not looked at
			parts = x.reserve(&mark, 1)
			ml = parts
		}
		x.begin(op, "attention", o.HeadDim, valueDim, chunk, wide, flag(split), flag(kv.Format == gpu.KVInt8))
		x.places(q)
		x.tableAt(list)
		x.tableAt(pages)
		x.places(y, parts, ml)
		constants(x, p)
		groups := n
		if split {
			groups *= chunks
		}
		x.end(attentionThreads, groups, perRow)
		if !split {
			continue
		}
		x.begin(op, "attention_merge", o.HeadDim, valueDim, chunk)
		x.tableAt(list)
		x.places(parts, ml, y)
		constants(x, p)
		x.end(elementThreads, ceil(o.Heads*valueDim, elementThreads), n)
	}
}

// attentionTables puts the rows of all segments into lists.rows and their sequences' pages into lists.pages. It returns the highest
// position. keys says that keys are the values, too.
func (x *encoder) attentionTables(segments []gpu.KVSegment, keys bool) (most int) {
	l := &x.lists
	l.rows, l.pages = l.rows[:0], l.pages[:0]
	for i := range segments {
		s := &segments[i]
		first := len(l.pages)
		for _, v := range s.KV.Pages[:(s.Pos+s.Rows-1)/s.KV.PageRows+1] {
			a := address(v)
			p := page{a + uint64(s.KV.KOffset), a + uint64(s.KV.VOffset)}
			if keys {
				p.v = p.k
			}
			l.pages = append(l.pages, p)
		}
		for r := range s.Rows {
			l.rows = append(l.rows, attentionRow{row: uint32(s.Row + r), pos: uint32(s.Pos + r), pages: uint32(first), pageRows: uint32(s.KV.PageRows)})
		}
		most = max(most, s.Pos+s.Rows-1)
	}
	return most
}

// widePages reports whether 4 channels of the cache can be loaded at once.
func widePages(o *gpu.Attention, valueDim int) bool {
	if o.HeadDim%4 != 0 || valueDim%4 != 0 {
		return false
	}
	if kv := &o.Segments[0].KV; kv.Format == gpu.KVInt8 { // 4 bytes, which pages are aligned to
		return kv.Group%4 == 0
	}
	for i := range o.Segments {
		kv := &o.Segments[i].KV
		if kv.KOffset%16 != 0 || kv.VOffset%16 != 0 || !aligned(16, kv.Pages...) {
			return false
		}
	}
	return true
}

type appendRow struct {
	k, v                   uint64
	row, slot, pageRows, _ uint32
}

type appendParams struct{ n, dim, kStride, vStride, group uint32 }

// appendSimdgroups is how many groups of channels a threadgroup rounds to 8 bits.
const appendSimdgroups = 8

// appendRows lists where the rows of segments go in the cache, in order.
func (x *encoder) appendRows(segments []gpu.KVSegment) []appendRow {
	l := &x.lists
	l.appends = l.appends[:0]
	for i := range segments {
		s := &segments[i]
		for r := range s.Rows {
			pos := s.Pos + r
			a := address(s.KV.Pages[pos/s.KV.PageRows])
			l.appends = append(l.appends, appendRow{k: a + uint64(s.KV.KOffset), v: a + uint64(s.KV.VOffset), row: uint32(s.Row + r),
				slot: uint32(pos % s.KV.PageRows), pageRows: uint32(s.KV.PageRows)})
		}
	}
	return l.appends
}

func (x *encoder) appendKV(o *gpu.AppendKV) {
	rows, dim := x.appendRows(o.Segments), o.Segments[0].KV.Dim
	values := flag(!o.V.IsZero())
	name, n, group := "append_kv", len(rows)*dim, 0
	if kv := &o.Segments[0].KV; kv.Format == gpu.KVInt8 {
		name, n, group = "append_kv8", len(rows)*(1+values)*kv.Groups(), kv.Group
	}
	x.begin(o, name, values)
	x.views(o.K, o.V)
	x.tableAt(table(x, rows))
	constants(x, appendParams{uint32(n), uint32(dim), uint32(or(o.KStride, dim)), uint32(or(o.VStride, dim)), uint32(group)})
	if group > 0 {
		x.end(32*appendSimdgroups, ceil(n, appendSimdgroups))
		return
	}
	x.elements(n)
}
