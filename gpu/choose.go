package gpu

import "math"

// Choose finds the positions that score highest for each row, which Attention then attends to. The
// cache holds one key of Dim channels a position, those of the segments' own rows among them; its
// values are not used. For row r at position p:
//
//	s_j = Σ_h Weights[r, h]·max(0, Scale·Q[r, h]·K[j])   for j = 0..p
//
// Chosen, int32 [rows, K], gets the min(K, p+1) positions of the largest s_j, rising; what follows
// them in a row is left alone. Of equal scores the lower position goes first, -0 equals 0, and NaN
// comes before everything, so that a row with one shows it. Q is dense [rows, Heads, Dim], Weights
// [rows, Heads]. What a row chooses depends on its own operands and keys alone.
type Choose struct {
	Q, Weights, Chosen View
	Heads, Dim, K      int
	Scale              float32
	Segments           []KVSegment
}

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
	rows := c.kvSegments(o.Segments)
	q := c.dense("Q", o.Q, rows, product(o.Heads, o.Dim))
	w := c.dense("Weights", o.Weights, rows, o.Heads)
	y := c.dense("Chosen", o.Chosen, rows, o.K)
	c.apart("Q", q, "Chosen", y)
	c.apart("Weights", w, "Chosen", y)
	for i := range o.Segments {
		if !c.ok() {
			break
		}
		s := &o.Segments[i]
		if s.KV.Dim != o.Dim {
			c.fail("the cache has %d channels, want Dim = %d", s.KV.Dim, o.Dim)
		}
		if end := sum(s.Pos, s.Rows); end > math.MaxInt32 {
			c.fail("positions up to %d, want at most %d", end, math.MaxInt32)
		}
		c.pages(&s.KV, 0, s.Pos+s.Rows)
		c.within("segment", i)
	}
	return c.result()
}

// checkChosen checks the positions that rows attend to, if they are listed.
func (o *Attention) checkChosen(c *checker, rows int, y span) {
	if o.Chosen.IsZero() {
		if c.ok() && o.Budget != 0 {
			c.fail("Budget is %d without Chosen", o.Budget)
		}
		return
	}
	c.positive("Budget", o.Budget)
	if c.ok() && (o.KVHeads != 1 || o.Segments[0].KV.VOffset != o.Segments[0].KV.KOffset) {
		c.fail("Chosen with %d key-value heads, keys at %d and values at %d of a page, want one head whose keys are its values",
			o.KVHeads, o.Segments[0].KV.KOffset, o.Segments[0].KV.VOffset)
	}
	c.apart("Chosen", c.dense("Chosen", o.Chosen, rows, o.Budget), "Y", y)
}
