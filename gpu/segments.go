package gpu

import "math"

// KVSegment is the rows of one sequence in an operation: Rows rows from row Row on, at positions
// Pos, Pos+1, …
type KVSegment struct {
	Row, Rows, Pos int
	KV             KV
}

// kvSegments requires at least one segment, none sharing a row with another, with a cache of one
// width whose table reaches the last position. It returns how many rows the operands have: up to
// the last segment's end.
func (c *checker) kvSegments(segs []KVSegment) (rows int) {
	c.positive("number of Segments", len(segs))
	for i := range segs {
		if !c.ok() {
			return rows
		}
		s := &segs[i]
		kv := &s.KV
		c.positive("Rows", s.Rows)
		c.positive("PageRows", kv.PageRows)
		c.positive("Dim", kv.Dim)
		if c.ok() {
			switch {
			case s.Row < 0 || s.Pos < 0:
				c.fail("row %d, position %d", s.Row, s.Pos)
			case kv.Dim != segs[0].KV.Dim:
				c.fail("the cache has %d channels, that of segment 0 %d", kv.Dim, segs[0].KV.Dim)
			case kv.VDim < 0 || kv.VDim > kv.Dim || kv.VDim != segs[0].KV.VDim:
				c.fail("the cache has %d channels and %d of values, those of segment 0 %d", kv.Dim, kv.VDim, segs[0].KV.VDim)
			case kv.Format > KVInt8:
				c.fail("the cache's format is %v, want %v or %v", kv.Format, KVF32, KVInt8)
			case kv.Format != segs[0].KV.Format || kv.Group != segs[0].KV.Group:
				c.fail("the cache is %v in groups of %d, that of segment 0 %v in groups of %d", kv.Format, kv.Group, segs[0].KV.Format, segs[0].KV.Group)
			case kv.Format == KVF32 && kv.Group != 0:
				c.fail("a cache of float32 has groups of %d channels, want 0", kv.Group)
			case kv.Format == KVInt8 && (kv.Group <= 0 || kv.Dim%kv.Group != 0 || kv.VDim%kv.Group != 0):
				c.fail("groups of %d channels do not divide the cache's %d", kv.Group, kv.Dim)
			case product(kv.PageRows, kv.Dim) > math.MaxInt/16:
				c.fail("pages of %d rows of %d channels", kv.PageRows, kv.Dim)
			case kv.KOffset < 0 || kv.VOffset < 0 || kv.KOffset%4 != 0 || kv.VOffset%4 != 0:
				c.fail("key offset %d and value offset %d, want multiples of 4", kv.KOffset, kv.VOffset)
			case kv.KOffset != segs[0].KV.KOffset || kv.VOffset != segs[0].KV.VOffset:
				c.fail("key offset %d and value offset %d, those of segment 0 %d and %d", kv.KOffset, kv.VOffset, segs[0].KV.KOffset, segs[0].KV.VOffset)
			case product(kv.Pages.Len(), kv.PageRows) < sum(s.Pos, s.Rows):
				c.fail("%d pages of %d rows are too few for the positions %d to %d",
					kv.Pages.Len(), kv.PageRows, s.Pos, sum(s.Pos, s.Rows-1))
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
func (c *checker) groups(kv *KV, name string, n int) {
	if c.err == nil && kv.Format == KVInt8 && n%kv.Group != 0 {
		c.fail("groups of %d channels do not divide %s %d", kv.Group, name, n)
	}
}

// pages requires the pages from page first to the one before position end to hold keys and values.
func (c *checker) pages(kv *KV, first, end int) {
	if c.err != nil {
		return
	}
	keys := kv.PartBytes()
	values := keys
	if kv.VDim != 0 {
		v := kv.Values()
		values = v.PartBytes()
	}
	n := max(sum(kv.KOffset, keys), sum(kv.VOffset, values))
	last := (end - 1) / kv.PageRows
	if last-first > 1 && kv.Pages.fit(last+1, n) {
		return
	}
	for p := first; p <= last; p++ {
		c.bytes("page", kv.Pages.At(p), n, 4)
		c.within("page table entry", p)
		if c.err != nil {
			return
		}
	}
}
