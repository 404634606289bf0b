package gpu

// AppendKV writes each segment's rows of K and V to the cache at their positions, in its format.
// Row r of K begins at r·KStride floats, of V at r·VStride; 0 means KV.Dim, and KV.VDim. A zero V
// leaves the values out: for a cache whose values are a part of its keys (KV.VOffset = KV.KOffset).
type AppendKV struct {
	K, V             View
	KStride, VStride int // float32s
	Segments         []KVSegment
}

// Kind returns the kind, see Op.
func (o *AppendKV) Kind() Kind { return KindAppendKV }

// Name returns the operation's name, see Op.
func (o *AppendKV) Name() string { return "appendkv" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
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
