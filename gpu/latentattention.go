package gpu

// LatentAttention is causal attention over a cache of compressed vectors that are expanded for each
// head. A row of the cache's keys is [latent (Rank), rotated key (Rope)]; the values are not used.
// For row r at position p and head h:
//
//	k_j = [ Keys_h·latent_j (Nope), rotated key_j ]      v_j = Values_h·latent_j (ValueDim)
//	s_j = Scale·Q[r, h]·k_j  for j = 0..p,   a = softmax(s),   Y[r, h] = Σ_j a_j·v_j
//
// Keys_h is Nope rows of Keys from row h·KeyRows on, or, if KeysTransposed, the transpose of Rank
// rows of them; Values_h is ValueDim rows of Values from row h·ValueRows + FirstValue on. Head (r,
// h) of Q begins at r·QRowStride + h·QHeadStride floats and has Nope+Rope channels. Y is dense
// [rows, Heads, ValueDim]. It computes what the folded form (HeadMatMul, Attention, HeadMatMul)
// does with fewer operations when many rows share one expansion.
type LatentAttention struct {
	Q, Y                              View
	QRowStride, QHeadStride           int // float32s
	Keys, Values                      Matrix
	KeyRows, ValueRows, FirstValue    int
	KeysTransposed                    bool
	Heads, Rank, Nope, Rope, ValueDim int
	Scale                             float32
	Cache                             KVLayout
	Segments                          []KVSegment
}

// Kind returns the kind, see Op.
func (o *LatentAttention) Kind() Kind { return KindLatentAttention }

// Name returns the operation's name, see Op.
func (o *LatentAttention) Name() string { return "latentattention" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
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
	rows := c.kvSegments(&o.Cache, o.Segments)
	q := c.heads("Q", o.Q, rows, o.Heads, sum(o.Nope, o.Rope), o.QRowStride, o.QHeadStride)
	y := c.dense("Y", o.Y, rows, product(o.Heads, o.ValueDim))
	c.apart("Q", q, "Y", y)
	if kv := &o.Cache; c.ok() {
		if want := sum(o.Rank, o.Rope); kv.Dim != want {
			c.fail("the cache has %d channels, want Rank+Rope = %d", kv.Dim, want)
		}
		c.groups(kv, "Rank", o.Rank)
		c.pages(kv, o.Segments, fromStart)
	}
	return c.result()
}
