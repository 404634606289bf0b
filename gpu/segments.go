package gpu

import "math"

// KVSegment is the rows of one sequence in an operation: Rows rows from row Row on, at positions
// Pos, Pos+1, … The operation says where in Pages its layer's keys and values lie, so all layers of
// a step share their segments.
type KVSegment struct {
	Row, Rows, Pos int
	Pages          Pages
}

// In returns the segment's cache of a layer.
func (s *KVSegment) In(l *KVLayout) KV { return KV{*l, s.Pages} }

// kvLayout requires a valid layout.
func (c *checker) kvLayout(kv *KVLayout) {
	c.positive("PageRows", kv.PageRows)
	c.positive("Dim", kv.Dim)
	if !c.ok() {
		return
	}
	switch {
	case kv.VDim < 0 || kv.VDim > kv.Dim:
		c.fail("the cache has %d channels and %d of values", kv.Dim, kv.VDim)
	case kv.Format > KVInt8:
		c.fail("the cache's format is %v, want %v or %v", kv.Format, KVF32, KVInt8)
	case kv.Format == KVF32 && kv.Group != 0:
		c.fail("a cache of float32 has groups of %d channels, want 0", kv.Group)
	case kv.Format == KVInt8 && (kv.Group <= 0 || kv.Dim%kv.Group != 0 || kv.VDim%kv.Group != 0):
		c.fail("groups of %d channels do not divide the cache's %d", kv.Group, kv.Dim)
	case product(kv.PageRows, kv.Dim) > math.MaxInt/16:
		c.fail("pages of %d rows of %d channels", kv.PageRows, kv.Dim)
	case kv.KOffset < 0 || kv.VOffset < 0 || kv.KOffset%4 != 0 || kv.VOffset%4 != 0:
		c.fail("key offset %d and value offset %d, want multiples of 4", kv.KOffset, kv.VOffset)
	}
}

// kvSegments requires a valid layout and at least one segment, none sharing a row with another,
// each with a table that reaches its last position. It returns how many rows the operands have: up
// to the last segment's end.
func (c *checker) kvSegments(kv *KVLayout, segs []KVSegment) (rows int) {
	c.kvLayout(kv)
	c.positive("number of Segments", len(segs))
	for i := range segs {
		if !c.ok() {
			return rows
		}
		s := &segs[i]
		c.positive("Rows", s.Rows)
		if c.ok() {
			switch {
			case s.Row < 0 || s.Pos < 0:
				c.fail("row %d, position %d", s.Row, s.Pos)
			case product(s.Pages.Len(), kv.PageRows) < sum(s.Pos, s.Rows):
				c.fail("%d pages of %d rows are too few for the positions %d to %d",
					s.Pages.Len(), kv.PageRows, s.Pos, sum(s.Pos, s.Rows-1))
			}
		}
		if s.Row < rows { // rows mostly ascend
			for j := range segs[:i] {
				c.rowsApart(j, segs[j].Row, segs[j].Rows, s.Row, s.Rows)
			}
		}
		c.within("segment", i)
		rows = max(rows, sum(s.Row, s.Rows))
	}
	return rows
}

// rowsApart requires the rows of the segment being checked to be none of segment j's.
func (c *checker) rowsApart(j, rowA, rowsA, rowB, rowsB int) {
	if c.err == nil && rowA < sum(rowB, rowsB) && rowB < sum(rowA, rowsA) {
		c.fail("rows %d to %d overlap rows %d to %d of segment %d", rowB, sum(rowB, rowsB-1), rowA, sum(rowA, rowsA-1), j)
	}
}

// groups requires groups of channels that share a scale to end where n channels do.
func (c *checker) groups(kv *KVLayout, name string, n int) {
	if c.err == nil && kv.Format == KVInt8 && n%kv.Group != 0 {
		c.fail("groups of %d channels do not divide %s %d", kv.Group, name, n)
	}
}

// partEnd returns where a layer's part of a page ends, in bytes: the least size of a page.
func (kv *KVLayout) partEnd() int {
	keys := kv.PartBytes()
	values := keys
	if kv.VDim != 0 {
		v := kv.Values()
		values = v.PartBytes()
	}
	return max(sum(kv.KOffset, keys), sum(kv.VOffset, values))
}

// pages requires pages of each segment to have room for a layer's part: those with the positions
// from what first returns to the last row's.
func (c *checker) pages(kv *KVLayout, segs []KVSegment, first func(s *KVSegment) int) {
	if !c.ok() {
		return
	}
	n := kv.partEnd()
	for i := range segs {
		if !c.ok() {
			return
		}
		s := &segs[i]
		from, last := first(s)/kv.PageRows, (s.Pos+s.Rows-1)/kv.PageRows
		if last-from > 1 && s.Pages.fit(last+1, n) {
			continue
		}
		for p := from; p <= last && c.ok(); p++ {
			c.bytes("page", s.Pages.At(p), n, 4)
			c.within("page table entry", p)
		}
		c.within("segment", i)
	}
}

// fromStart and fromOwn say which pages an operation looks at: all, or those from a segment's first
// row on.
func fromStart(*KVSegment) int { return 0 }
func fromOwn(s *KVSegment) int { return s.Pos }
