package gpu

// smallPairs is how many pairs Experts.Check can mark without allocating: 1024 rows of 8 picks.
const smallPairs = 8192

func (o *Experts) Check() error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.positive("TopK", o.TopK)
	c.positive("number of Experts", len(o.Experts))
	if !c.ok() {
		return c.result()
	}
	inner, dim := o.Experts[0].Gate.Rows, o.Experts[0].Gate.Cols
	pairs := product(o.Rows, o.TopK)
	x := c.dense("X", o.X, o.Rows, dim)
	y := c.dense("Y", o.Y, pairs, dim)
	s := c.dense("Scratch", o.Scratch, pairs, product(2, inner))
	c.apart("X", x, "Y", y)
	c.apart("X", x, "Scratch", s)
	c.apart("Y", y, "Scratch", s)
	if !c.ok() {
		return c.result()
	}
	var small [smallPairs / 64]uint64
	seen := small[:]
	if pairs > smallPairs { // Y holds them all, so the number is sane
		seen = make([]uint64, (pairs+63)/64)
	}
	for i := range o.Experts {
		e := &o.Experts[i]
		c.matrix("Gate", &e.Gate)
		c.matrix("Up", &e.Up)
		c.matrix("Down", &e.Down)
		c.shape("Gate", &e.Gate, inner, dim)
		c.shape("Up", &e.Up, inner, dim)
		c.shape("Down", &e.Down, dim, inner)
		c.positive("number of Pairs", len(e.Pairs))
		c.pairs(e.Pairs, pairs, seen)
		c.within("expert", i)
		if !c.ok() {
			break
		}
	}
	return c.result()
}

// pairs wants an ascending list within [0, n) of pairs that are not marked in seen, and marks them.
func (c *checker) pairs(list []int32, n int, seen []uint64) {
	if c.err != nil {
		return
	}
	before := int32(-1)
	for i, p := range list {
		switch {
		case p < 0 || int(p) >= n:
			c.fail("pair %d at index %d is outside the %d there are", p, i, n)
			return
		case p <= before:
			c.fail("pair %d at index %d follows %d, want an ascending list", p, i, before)
			return
		case seen[p/64]&(1<<(p%64)) != 0:
			c.fail("pair %d at index %d belongs to an earlier expert", p, i)
			return
		}
		seen[p/64] |= 1 << (p % 64)
		before = p
	}
}

func (o *Combine) Check() error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.positive("TopK", o.TopK)
	c.positive("Dim", o.Dim)
	if pairs := product(o.Rows, o.TopK); c.ok() && len(o.Weights) != pairs {
		c.fail("%d weights for %d rows of %d picks, want %d", len(o.Weights), o.Rows, o.TopK, pairs)
	}
	routed := c.dense("Routed", o.Routed, product(o.Rows, o.TopK), o.Dim)
	residual := c.dense("Residual", o.Residual, o.Rows, o.Dim)
	y := c.dense("Y", o.Y, o.Rows, o.Dim)
	c.apart("Routed", routed, "Y", y)
	c.sameOrApart("Residual", residual, "Y", y)
	if !o.Shared.IsZero() {
		c.apart("Shared", c.dense("Shared", o.Shared, o.Rows, o.Dim), "Y", y)
	}
	if !o.SharedGate.IsZero() {
		if c.ok() && o.Shared.IsZero() {
			c.fail("a SharedGate without Shared")
		}
		c.apart("SharedGate", c.floats("SharedGate", o.SharedGate, o.Rows), "Y", y)
	}
	return c.result()
}
