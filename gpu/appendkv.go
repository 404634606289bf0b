package gpu

// AppendKV writes each segment's rows of K and V to the cache at their positions, in its format.
// Row r of K begins at r·KStride floats, of V at r·VStride; 0 means Cache.Dim, and that of
// Cache.Values. A zero V leaves the values out: for a cache whose values are a part of its keys
// (Cache.VOffset = Cache.KOffset).
type AppendKV struct {
	K, V             View
	KStride, VStride int // float32s
	Cache            KVLayout
	Segments         []KVSegment
}

// Kind returns the kind, see Op.
func (o *AppendKV) Kind() Kind { return KindAppendKV }

// Name returns the operation's name, see Op.
func (o *AppendKV) Name() string { return "appendkv" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *AppendKV) Check() error {
	c := checker{op: o.Name()}
	kv := &o.Cache
	rows := c.kvSegments(kv, o.Segments)
	if !c.ok() {
		return c.result()
	}
	values := kv.Values()
	c.strided("K", o.K, rows, kv.Dim, or(o.KStride, kv.Dim))
	if !o.V.IsZero() || kv.VOffset != kv.KOffset {
		c.strided("V", o.V, rows, values.Dim, or(o.VStride, values.Dim))
		k, v := kv.PartBytes(), values.PartBytes()
		if c.ok() && kv.KOffset < sum(kv.VOffset, v) && kv.VOffset < sum(kv.KOffset, k) {
			c.fail("keys at %d and values at %d of a page overlap, they have %d and %d bytes", kv.KOffset, kv.VOffset, k, v)
		}
	}
	c.pages(kv, o.Segments, fromOwn)
	return c.result()
}
