package launch

import "github.com/moeflux/moeflux-actor/gpu"

const (
	headSets       = 3 // kinds of vectors of a launch: queries, keys, values
	headSimdgroups = 4 // of a threadgroup
	mostHeadDim    = teamDim - 1
)

// The values of headSet.part.
const (
	partNone = iota
	partKeys
	partValues
)

// headSet mirrors HeadSet of headvectors.metal.
type headSet struct {
	x, w, turns, copy                 uint64
	row, head, heads, dim             uint32
	norm, turned, pairs, part         uint32
	copied, copies, copyRow, copyHead uint32
	eps                               float32
	_                                 uint32
}

type headVectorsParams struct {
	set                            [headSets]headSet
	vectors, rows, cacheDim, group uint32
}

// headVectors are the vectors of one kind, and what happens to them, in this order: a norm of the
// first channels, rotation, a copy or a place in the cache.
type headVectors struct {
	x              gpu.View
	vectors        int // known from a norm before the rows are
	row, head      int // strides, float32s; row is known when heads is
	heads, dim     int // heads is 0 until it is known
	norm           int // channels
	eps            float32
	w, turns, copy gpu.View
	turned, pairs  int // the first channel that is rotated, and half of how many
	part           int
	copied, copies int
	copyRow        int
	copyHead       int
}

// headJoin collects operations on heads' vectors that can be one launch.
type headJoin struct {
	set         [headSets]headVectors
	sets, rows  int // rows is 0 until it is known
	interleaved bool
	rotated     bool
	append      *gpu.AppendKV
}

// joinHeads joins norms, rotations and copies of heads' vectors, and their way to the cache.
func (x *encoder) joinHeads(ops []gpu.Op) int {
	h := &x.lists.heads
	*h = headJoin{}
	n := 0
	for n < len(ops) && h.take(ops[n]) {
		n++
	}
	if n < 2 || !h.settle() || !h.apart() {
		*h = headJoin{}
		return 0
	}
	x.headVectors(ops[0], h)
	*h = headJoin{} // it points into the commands
	return n
}

// take adds an operation, if it is one of those and may follow what was taken before.
func (h *headJoin) take(op gpu.Op) bool {
	switch o := op.(type) {
	case *gpu.RMSNorm:
		return h.takeNorm(o)
	case *gpu.Rope:
		return h.takeRope(o)
	case *gpu.AppendKV:
		return h.takeAppend(o)
	case *gpu.CopyHeads:
		return h.takeCopy(o)
	}
	return false
}

// find returns the vectors that have a view in their first one, and at which channel.
func (h *headJoin) find(v gpu.View) (s *headVectors, channel int) {
	for i := range h.sets {
		s = &h.set[i]
		if from, at := address(s.x), address(v); at >= from && at < from+4*uint64(s.head) {
			return s, int(at-from) / 4
		}
	}
	return nil, 0
}

// add returns room for vectors of another kind, or nil.
func (h *headJoin) add() *headVectors {
	if h.sets == headSets {
		return nil
	}
	h.sets++
	return &h.set[h.sets-1]
}

// are reports whether s has this many heads and rows, with these strides; head does not matter if
// there is one head.
func (s *headVectors) are(rows, heads, row, head int) bool {
	if s.heads == 0 {
		return s.vectors == rows*heads && row == heads*s.head && (heads == 1 || head == s.head)
	}
	return s.heads == heads && s.row == row && (heads == 1 || head == s.head)
}

func (h *headJoin) takeNorm(o *gpu.RMSNorm) bool {
	stride := or(o.XStride, o.Dim)
	if h.append != nil || o.W.IsZero() || o.Dim < 2 || o.Dim > mostHeadDim || address(o.X) != address(o.Y) || or(o.YStride, o.Dim) != stride {
		return false
	}
	if s, _ := h.find(o.X); s != nil {
		return false
	}
	s := h.add()
	if s == nil {
		return false
	}
	*s = headVectors{x: o.X, vectors: o.Vectors, head: stride, dim: o.Dim, norm: o.Dim, eps: o.Eps, w: o.W}
	return true
}

func (h *headJoin) takeRope(o *gpu.Rope) bool {
	if h.append != nil || h.rotated && h.interleaved != o.Interleaved || h.rows != 0 && h.rows != o.Rows {
		return false
	}
	s, channel := h.find(o.X)
	if s == nil {
		if o.Rotary > mostHeadDim {
			return false
		}
		if s = h.add(); s == nil {
			return false
		}
		*s = headVectors{x: o.X, row: o.RowStride, head: max(o.HeadStride, o.Rotary), heads: o.Heads, dim: o.Rotary}
	}
	if s.pairs > 0 || s.copies > 0 || channel+o.Rotary > mostHeadDim || !s.are(o.Rows, o.Heads, o.RowStride, o.HeadStride) {
		return false
	}
	h.rows, h.rotated, h.interleaved = o.Rows, true, o.Interleaved
	s.heads, s.row = o.Heads, o.RowStride
	s.turned, s.pairs, s.turns, s.dim = channel, o.Rotary/2, o.Table, max(s.dim, channel+o.Rotary)
	return true
}

// takeAppend takes keys that have been normalised or rotated, and the values with them.
func (h *headJoin) takeAppend(o *gpu.AppendKV) bool {
	kv, rows := &o.Cache, 0
	if kv.VDim != 0 {
		return false
	}
	for i := range o.Segments {
		if o.Segments[i].Row != rows {
			return false
		}
		rows += o.Segments[i].Rows
	}
	s, channel := h.find(o.K)
	if h.append != nil || h.rows != 0 && h.rows != rows || s == nil || channel != 0 {
		return false
	}
	heads := s.heads
	if heads == 0 {
		heads = s.vectors / rows
	}
	width := kv.Dim
	if heads > 1 {
		width = s.head
	}
	if s.dim > width || width < 2 || width > mostHeadDim || heads*width != kv.Dim || kv.Group > 0 && width%kv.Group != 0 || s.copies > 0 ||
		!s.are(rows, heads, or(o.KStride, kv.Dim), width) {
		return false
	}
	if !o.V.IsZero() {
		v := h.add()
		if v == nil {
			return false
		}
		*v = headVectors{x: o.V, row: or(o.VStride, kv.Dim), head: width, heads: heads, dim: width, part: partValues}
	}
	h.rows, h.append = rows, o
	s.heads, s.row, s.dim, s.part = heads, or(o.KStride, kv.Dim), width, partKeys
	return true
}

func (h *headJoin) takeCopy(o *gpu.CopyHeads) bool {
	s, channel := h.find(o.X)
	if s == nil || h.rows != o.Rows || s.copies > 0 || channel+o.Dim > s.dim || !s.are(o.Rows, o.Heads, o.XRowStride, o.XHeadStride) {
		return false
	}
	s.heads, s.row = o.Heads, o.XRowStride
	s.copied, s.copies, s.copy, s.copyRow, s.copyHead = channel, o.Dim, o.Y, o.YRowStride, o.YHeadStride
	return true
}

// settle finds the heads of vectors of which only norms are known. Where that is all there is, they
// are one row's.
func (h *headJoin) settle() bool {
	h.rows = max(h.rows, 1)
	for i := range h.sets {
		s := &h.set[i]
		if s.heads > 0 {
			continue
		}
		if s.vectors%h.rows != 0 {
			return false
		}
		s.heads = s.vectors / h.rows
		s.row = s.heads * s.head
	}
	return true
}

// extent is where the vectors lie, with what is between them.
func (s *headVectors) extent(rows int) extent {
	return floatsAt(s.x, rows, (s.heads-1)*s.head+s.dim, s.row)
}

// copyExtent is where the vectors are copied to.
func (s *headVectors) copyExtent(rows int) extent {
	if s.copies == 0 {
		return extent{}
	}
	return floatsAt(s.copy, rows, (s.heads-1)*s.copyHead+s.copies, s.copyRow)
}

func (s *headVectors) changed() bool { return s.norm > 0 || s.pairs > 0 }

// reads are the extents of what is read of a set beside its vectors.
func (s *headVectors) reads(rows int) [2]extent {
	return [2]extent{extentOf(s.w, 4*s.norm), extentOf(s.turns, 8*rows*s.pairs)}
}

// apart reports whether nothing that is written is seen by another set, nor the cache by any.
func (h *headJoin) apart() bool {
	var used [4 * len(h.set)]extent
	for i := range h.sets {
		s := &h.set[i]
		vectors, copies, reads := s.extent(h.rows), s.copyExtent(h.rows), s.reads(h.rows)
		if s.changed() && !vectors.apart(reads[:]...) || !copies.apart(vectors) || !copies.apart(reads[:]...) {
			return false
		}
		used[4*i], used[4*i+1], used[4*i+2], used[4*i+3] = vectors, copies, reads[0], reads[1]
		for j := range h.sets {
			o := &h.set[j]
			if i == j {
				continue
			}
			others := o.reads(h.rows)
			if !copies.apart(o.extent(h.rows), o.copyExtent(h.rows)) || !copies.apart(others[:]...) {
				return false
			}
			if s.changed() && (!vectors.apart(o.extent(h.rows)) || !vectors.apart(others[:]...)) {
				return false
			}
		}
	}
	return h.append == nil || apartFromCache(h.append, used[:4*h.sets]...)
}

// apartFromCache reports whether the pages that rows go to share no byte with any of all. A step of
// many texts has many pages, which mostly lie where none of all does nor anything between them.
func apartFromCache(o *gpu.AppendKV, all ...extent) bool {
	around, kv := hull(all), &o.Cache
	first := min(kv.KOffset, kv.VOffset)
	size := max(kv.KOffset, kv.VOffset) - first + kv.PartBytes()
	for i := range o.Segments {
		s := &o.Segments[i]
		for p := s.Pos / kv.PageRows; p <= (s.Pos+s.Rows-1)/kv.PageRows; p++ {
			if e := extentOf(s.Pages.At(p).At(first), size); e.overlaps(around) && !e.apart(all...) {
				return false
			}
		}
	}
	return true
}

// headVectors launches what h has collected, for op, the first of it.
func (x *encoder) headVectors(op gpu.Op, h *headJoin) {
	p := headVectorsParams{rows: uint32(h.rows)}
	quads, wide, kv8 := 1, true, false
	for i := range h.sets {
		s := &h.set[i]
		p.set[i] = headSet{x: address(s.x), w: addressOf(s.w), turns: addressOf(s.turns), copy: addressOf(s.copy), row: uint32(s.row), head: uint32(s.head),
			heads: uint32(s.heads), dim: uint32(s.dim), norm: uint32(s.norm), turned: uint32(s.turned), pairs: uint32(s.pairs), part: uint32(s.part),
			copied: uint32(s.copied), copies: uint32(s.copies), copyRow: uint32(s.copyRow), copyHead: uint32(s.copyHead), eps: s.eps}
		if s.norm == 0 {
			p.set[i].w = p.set[i].x
		}
		if s.pairs == 0 {
			p.set[i].turns = p.set[i].x
		}
		p.vectors += uint32(s.heads)
		for 128*quads < s.dim {
			quads *= 2
		}
		wide = wide && aligned(16, s.x) && s.dim%4 == 0 && s.row%4 == 0 && (s.heads == 1 || s.head%4 == 0)
	}
	if h.append != nil {
		kv := &h.append.Cache
		p.cacheDim, p.group, kv8 = uint32(kv.Dim), uint32(kv.Group), kv.Format == gpu.KVInt8
	}
	x.begin(op, "head_vectors", quads, flag(wide), flag(h.interleaved), flag(kv8))
	if h.append != nil {
		x.tableAt(table(x, x.appendRows(h.append)))
	} else {
		x.views(gpu.View{})
	}
	constants(x, p)
	x.end(32*headSimdgroups, ceil(int(p.vectors)*h.rows, headSimdgroups))
}
