package gpu

// Attention is causal softmax attention over the paged cache, which holds the segment's own rows
// already. For row r at position p, query head h, with key-value head g = h / (Heads/KVHeads):
//
//	s_j = Scale·Q[r,h]·K[j,g]  for j = 0..p,   a = softmax(s),   Y[r,h] = Σ_j a_j·V[j,g]
//
// Head (r, h) of Q begins at r·QRowStride + h·QHeadStride floats; Y is dense [rows, Heads,
// HeadDim].
//
// Sinks, float32 [Heads], is a score of each head that takes part in the softmax without having a
// value, so that a sums to less than one:
//
//	a_j = exp(s_j) / (Σ_j exp(s_j) + exp(Sinks[h]))
//
// The zero View means none.
//
// With ValueDim not 0 a value has ValueDim channels, and Y is dense [rows, Heads, ValueDim]. Those
// of key-value head g begin at channel g·ValueDim of a row of values, which may be the row of keys
// itself if there is one key-value head.
//
// With Window not 0 row r attends to j = max(0, p-Window+1)..p, that is to Window positions with
// its own. Pages that lie before all of these as a whole are not looked at: their entries in the
// table may be anything.
//
// With ValueScale not 0 Y is multiplied by it.
//
// A device that rounds inputs may round queries too, where the cache is KVInt8 and Group a multiple
// of 16: Scale·Q[r,h] in groups of Group channels as MatMul rounds a row of X, so that scores are
// sums of whole numbers. The processor does, GPUs do not.
//
// Chosen, int32 [rows, KVHeads, Budget], lists what row r attends to instead of 0..p with the heads
// of a key-value head, as Choose writes it: positions, or with Block blocks of positions, of which
// the row's own is the last. The entries are the first of the list, min(Budget, p/Block+1) of them,
// rising. A row that has chosen all positions gets the bits that it gets without Chosen.
type Attention struct {
	Q, Sinks, Chosen, Y     View
	Budget, Block           int // 0, 0 without Chosen
	QRowStride, QHeadStride int // float32s
	Heads, KVHeads, HeadDim int
	ValueDim                int
	Window                  int // 0: all positions
	Scale, ValueScale       float32
	Cache                   KVLayout
	Segments                []KVSegment
}

// Kind returns the kind, see Op.
func (o *Attention) Kind() Kind { return KindAttention }

// Name returns the operation's name, see Op.
func (o *Attention) Name() string { return "attention" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *Attention) Check() error {
	c := checker{op: o.Name()}
	c.positive("Heads", o.Heads)
	c.positive("KVHeads", o.KVHeads)
	c.positive("HeadDim", o.HeadDim)
	if !c.ok() {
		return c.result()
	}
	c.divides("Heads", o.Heads, "KVHeads", o.KVHeads)
	rows := c.kvSegments(&o.Cache, o.Segments)
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
	if kv := &o.Cache; c.ok() {
		if want := product(o.KVHeads, o.HeadDim); kv.Dim != want {
			c.fail("the cache has %d channels, want KVHeads·HeadDim = %d", kv.Dim, want)
		}
		values := or(kv.VDim, kv.Dim)
		if need := product(o.KVHeads, or(o.ValueDim, o.HeadDim)); values < need || kv.VDim != 0 && values != need {
			c.fail("a row of values has %d channels, want %d", values, need)
		}
		c.groups(kv, "HeadDim", o.HeadDim)
		c.groups(kv, "ValueDim", o.ValueDim)
		c.pages(kv, o.Segments, func(s *KVSegment) int { return FirstOf(s.Pos, o.Window) })
	}
	return c.result()
}

// Attended returns how many positions a row at pos attends to: all up to its own, or as many as
// Chosen lists for it.
func (o *Attention) Attended(pos int) int {
	if o.Budget == 0 {
		return pos + 1
	}
	block := max(o.Block, 1)
	return min(pos/block, o.Budget-1)*block + pos%block + 1
}

// checkChosen checks what rows attend to, if that is listed.
func (o *Attention) checkChosen(c *checker, rows int, y span) {
	if o.Chosen.IsZero() {
		if c.ok() && (o.Budget != 0 || o.Block != 0) {
			c.fail("Budget is %d and Block %d without Chosen", o.Budget, o.Block)
		}
		return
	}
	c.positive("Budget", o.Budget)
	if c.ok() && o.Block < 0 {
		c.fail("Block is %d", o.Block)
	}
	c.apart("Chosen", c.dense("Chosen", o.Chosen, rows, product(o.KVHeads, o.Budget)), "Y", y)
}
