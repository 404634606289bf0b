package gpu

import "math"

// Choose finds what scores highest for each row, which Attention then attends to: positions, or
// with Block blocks of positions. The cache holds one key of Dim channels a position, those of the
// segments' own rows among them; its values are not used. Q is dense [rows, Heads, Dim]. What a row
// chooses depends on its own operands and keys alone.
//
// With Block 0 all heads choose together. For row r at position p:
//
//	s_j = Σ_h Weights[r, h]·max(0, Scale·Q[r, h]·K[j])   for j = 0..p
//
// Weights is [rows, Heads]. Chosen, int32 [rows, K], gets the min(K, p+1) positions of the largest
// s_j, rising; what follows them in a row is left alone.
//
// With Block above 0 each head chooses for itself, and there are no Weights. Block b is the
// positions from b·Block on, and the last one that row r sees is its own, B = p/Block:
//
//	s_b = max_j Scale·Q[r, h]·K[j]   over the positions j <= p of block b
//
// Chosen, int32 [rows, Heads, K], gets min(K, B+1) blocks, rising: the row's own and the Local-1
// before it, and of the others those of the largest s_b.
//
// Of equal scores the lower goes first, -0 equals 0, and NaN comes before everything, so that a row
// with one shows it.
type Choose struct {
	Q, Weights, Chosen View
	Heads, Dim, K      int
	Block, Local       int // 0, 0: positions
	Scale              float32
	Cache              KVLayout
	Segments           []KVSegment
}

// Lists returns how many lists of K entries a row of Chosen has.
func (o *Choose) Lists() int {
	if o.Block > 0 {
		return o.Heads
	}
	return 1
}

// Kind returns the kind, see Op.
func (o *Choose) Kind() Kind { return KindChoose }

// Name returns the operation's name, see Op.
func (o *Choose) Name() string { return "choose" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *Choose) Check() error {
	c := checker{op: o.Name()}
	c.positive("Heads", o.Heads)
	c.positive("Dim", o.Dim)
	c.positive("K", o.K)
	if !c.ok() {
		return c.result()
	}
	rows := c.kvSegments(&o.Cache, o.Segments)
	q := c.dense("Q", o.Q, rows, product(o.Heads, o.Dim))
	y := c.dense("Chosen", o.Chosen, rows, product(o.Lists(), o.K))
	c.apart("Q", q, "Chosen", y)
	switch {
	case o.Block == 0 && o.Local == 0:
		c.apart("Weights", c.dense("Weights", o.Weights, rows, o.Heads), "Chosen", y)
	case o.Block <= 0 || o.Local < 1 || o.Local > o.K:
		c.fail("the last %d of blocks of %d are chosen in any case, want 1 to K = %d of at least 1", o.Local, o.Block, o.K)
	case !o.Weights.IsZero():
		c.fail("Weights with blocks, which each head chooses for itself")
	}
	if c.ok() && o.Cache.Dim != o.Dim {
		c.fail("the cache has %d channels, want Dim = %d", o.Cache.Dim, o.Dim)
	}
	for i := range o.Segments {
		if !c.ok() {
			break
		}
		if end := sum(o.Segments[i].Pos, o.Segments[i].Rows); end > math.MaxInt32 {
			c.fail("positions up to %d, want at most %d", end, math.MaxInt32)
		}
		c.within("segment", i)
	}
	c.pages(&o.Cache, o.Segments, fromStart)
	return c.result()
}
