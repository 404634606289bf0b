package gpu

import (
	"math"
	"sync"
)

func (o *AppendKV) Check() error {
	c := checker{op: o.Name()}
	rows := c.kvSegments(o.Segments)
	if !c.ok() {
		return c.result()
	}
	dim, values := o.Segments[0].KV.Dim, o.Segments[0].KV.Values()
	c.strided("K", o.K, rows, dim, or(o.KStride, dim))
	keysOnly := o.V.IsZero() && o.Segments[0].KV.VOffset == o.Segments[0].KV.KOffset
	if !keysOnly {
		c.strided("V", o.V, rows, values.Dim, or(o.VStride, values.Dim))
	}
	for i := range o.Segments {
		s := &o.Segments[i]
		k, v := s.KV.PartBytes(), values.PartBytes()
		if kv := &s.KV; c.ok() && !keysOnly && kv.KOffset < sum(kv.VOffset, v) && kv.VOffset < sum(kv.KOffset, k) {
			c.fail("keys at %d and values at %d of a page overlap, they have %d and %d bytes", kv.KOffset, kv.VOffset, k, v)
		}
		if c.ok() {
			c.pages(&s.KV, s.Pos/s.KV.PageRows, s.Pos+s.Rows)
		}
		c.within("segment", i)
		if !c.ok() {
			break
		}
	}
	return c.result()
}

func (o *Attention) Check() error {
	c := checker{op: o.Name()}
	c.positive("Heads", o.Heads)
	c.positive("KVHeads", o.KVHeads)
	c.positive("HeadDim", o.HeadDim)
	if !c.ok() {
		return c.result()
	}
	c.divides("Heads", o.Heads, "KVHeads", o.KVHeads)
	rows := c.kvSegments(o.Segments)
	q := c.heads("Q", o.Q, rows, o.Heads, o.HeadDim, o.QRowStride, o.QHeadStride)
	if o.ValueDim < 0 || o.ValueDim > o.HeadDim {
		c.fail("ValueDim %d with heads of %d channels", o.ValueDim, o.HeadDim)
	}
	if o.Window < 0 || o.Window > 0 && o.Budget > 0 {
		c.fail("a window of %d positions, and %d chosen ones", o.Window, o.Budget)
	}
	y := c.dense("Y", o.Y, rows, product(o.Heads, or(o.ValueDim, o.HeadDim)))
	c.apart("Q", q, "Y", y)
	if !o.Sinks.IsZero() {
		c.apart("Sinks", c.floats("Sinks", o.Sinks, o.Heads), "Y", y)
	}
	o.checkChosen(&c, rows, y)
	for i := range o.Segments {
		if !c.ok() {
			break
		}
		s := &o.Segments[i]
		if want := product(o.KVHeads, o.HeadDim); s.KV.Dim != want {
			c.fail("the cache has %d channels, want KVHeads·HeadDim = %d", s.KV.Dim, want)
		}
		values := s.KV.Values()
		if need := product(o.KVHeads, or(o.ValueDim, o.HeadDim)); values.Dim < need || s.KV.VDim != 0 && values.Dim != need {
			c.fail("a row of values has %d channels, want %d", values.Dim, need)
		}
		c.groups(&s.KV, "HeadDim", o.HeadDim)
		c.groups(&s.KV, "ValueDim", o.ValueDim)
		c.pages(&s.KV, FirstOf(s.Pos, o.Window)/s.KV.PageRows, s.Pos+s.Rows)
		c.within("segment", i)
	}
	return c.result()
}

func (o *LatentAttention) Check() error {
	c := checker{op: o.Name()}
	c.positive("Heads", o.Heads)
	c.positive("Rank", o.Rank)
	c.positive("Nope", o.Nope)
	c.positive("Rope", o.Rope)
	c.positive("ValueDim", o.ValueDim)
	c.matrix("Keys", &o.Keys)
	c.matrix("Values", &o.Values)
	if !c.ok() {
		return c.result()
	}
	used, cols := o.Nope, o.Rank
	if o.KeysTransposed {
		used, cols = o.Rank, o.Nope
	}
	if o.Keys.Cols != cols || o.Values.Cols != o.Rank {
		c.fail("Keys has %d columns and Values %d, want %d and %d", o.Keys.Cols, o.Values.Cols, cols, o.Rank)
	}
	c.blocks("Keys", &o.Keys, o.Heads, o.KeyRows, 0, used)
	c.blocks("Values", &o.Values, o.Heads, o.ValueRows, o.FirstValue, o.ValueDim)
	rows := c.kvSegments(o.Segments)
	q := c.heads("Q", o.Q, rows, o.Heads, sum(o.Nope, o.Rope), o.QRowStride, o.QHeadStride)
	y := c.dense("Y", o.Y, rows, product(o.Heads, o.ValueDim))
	c.apart("Q", q, "Y", y)
	for i := range o.Segments {
		if !c.ok() {
			break
		}
		s := &o.Segments[i]
		if want := sum(o.Rank, o.Rope); s.KV.Dim != want {
			c.fail("the cache has %d channels, want Rank+Rope = %d", s.KV.Dim, want)
		}
		c.groups(&s.KV, "Rank", o.Rank)
		c.pages(&s.KV, 0, s.Pos+s.Rows)
		c.within("segment", i)
	}
	return c.result()
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

// stateEnds finds out whether states that lie apart do so without comparing each with each: the
// end of the last state in each buffer. The pool holds memory and nothing else.
type stateEnds map[Buffer]int

var stateEndsPool = sync.Pool{New: func() any { return stateEnds{} }}

// fewStates is how many states are compared each with each.
const fewStates = 8

// stateSegments requires at least one segment, none sharing a row or a state with another, each
// with a state of stateFloats float32. It returns how many rows the operands have.
func (c *checker) stateSegments(segs []StateSegment, stateFloats int) (rows int) {
	c.positive("number of Segments", len(segs))
	var ends stateEnds
	if len(segs) > fewStates && stateFloats > 0 {
		ends = stateEndsPool.Get().(stateEnds)
		defer func() { clear(ends); stateEndsPool.Put(ends) }()
	}
	for i := range segs {
		if !c.ok() {
			return rows
		}
		s := &segs[i]
		c.positive("Rows", s.Rows)
		if c.ok() && s.Row < 0 {
			c.fail("row %d", s.Row)
		}
		if stateFloats > 0 {
			c.floats("State", s.State, stateFloats)
		}
		apart := stateFloats == 0
		if ends != nil && c.ok() {
			end, known := ends[s.State.Buf]
			apart = !known || s.State.Offset >= end
			ends[s.State.Buf] = max(end, s.State.Offset+4*stateFloats)
		}
		if apart && s.Row >= rows {
			rows = sum(s.Row, s.Rows)
			c.within("segment", i)
			continue
		}
		for j := range segs[:i] {
			c.rowsApart(j, segs[j].Row, segs[j].Rows, s.Row, s.Rows)
			if c.ok() && overlap(stateSpan(&segs[j], stateFloats), stateSpan(s, stateFloats)) {
				c.fail("shares its state with segment %d", j)
			}
		}
		c.within("segment", i)
		rows = max(rows, sum(s.Row, s.Rows))
	}
	return rows
}

func stateSpan(s *StateSegment, floats int) span {
	return span{s.State, 1, 4 * floats, 4 * floats}
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
	values := kv.Values()
	n := max(sum(kv.KOffset, kv.PartBytes()), sum(kv.VOffset, values.PartBytes()))
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

func (o *CausalConv) Check() error {
	c := checker{op: o.Name()}
	c.positive("Channels", o.Channels)
	c.positive("Kernel", o.Kernel)
	rows := c.stateSegments(o.Segments, product(o.Kernel-1, o.Channels))
	x := c.dense("X", o.X, rows, o.Channels)
	y := c.dense("Y", o.Y, rows, o.Channels)
	w := c.floats("W", o.W, product(o.Channels, o.Kernel))
	c.apart("X", x, "Y", y)
	c.apart("W", w, "Y", y)
	return c.result()
}

func (o *DeltaRule) Check() error {
	c := checker{op: o.Name()}
	c.positive("KeyHeads", o.KeyHeads)
	c.positive("ValueHeads", o.ValueHeads)
	c.positive("KeyDim", o.KeyDim)
	c.positive("ValueDim", o.ValueDim)
	if !c.ok() {
		return c.result()
	}
	c.divides("ValueHeads", o.ValueHeads, "KeyHeads", o.KeyHeads)
	values := product(o.ValueHeads, o.ValueDim)
	rows := c.stateSegments(o.Segments, product(values, o.KeyDim))
	qkv := c.dense("QKV", o.QKV, rows, sum(product(2, product(o.KeyHeads, o.KeyDim)), values))
	alpha := c.dense("Alpha", o.Alpha, rows, o.ValueHeads)
	beta := c.dense("Beta", o.Beta, rows, o.ValueHeads)
	alog := c.floats("ALog", o.ALog, o.ValueHeads)
	bias := c.floats("DtBias", o.DtBias, o.ValueHeads)
	y := c.dense("Y", o.Y, rows, values)
	c.apart("QKV", qkv, "Y", y)
	c.apart("Alpha", alpha, "Y", y)
	c.apart("Beta", beta, "Y", y)
	c.apart("ALog", alog, "Y", y)
	c.apart("DtBias", bias, "Y", y)
	return c.result()
}
