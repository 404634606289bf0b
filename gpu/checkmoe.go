package gpu

import "github.com/moeflux/moeflux-actor/model/route"

// Check requires a table with a place on the device.
func (o *Tabulate) Check() error {
	c := checker{op: o.Name()}
	switch {
	case o.Table == nil:
		c.fail("no Table")
	case o.Table.At.IsZero():
		c.fail("the table has no place on the device")
	}
	if c.ok() {
		c.bytes("Table.At", o.Table.At, product(len(o.Table.Experts), TableBytes), 8)
		c.experts(o.Table.Experts)
	}
	return c.result()
}

// experts requires experts of one shape, the formats of each matrix the same in all.
func (c *checker) experts(list []Expert) {
	c.positive("number of Experts", len(list))
	if !c.ok() {
		return
	}
	first := &list[0]
	inner, dim := first.Gate.Rows, first.Gate.Cols
	for i := range list {
		e := &list[i]
		c.matrix("Gate", &e.Gate)
		c.matrix("Up", &e.Up)
		c.matrix("Down", &e.Down)
		c.shape("Gate", &e.Gate, inner, dim)
		c.shape("Up", &e.Up, inner, dim)
		c.shape("Down", &e.Down, dim, inner)
		c.expertBiases(e, first.Biased())
		if c.ok() && (e.Gate.Format != first.Gate.Format || e.Up.Format != first.Up.Format || e.Down.Format != first.Down.Format) {
			c.fail("formats %v, %v and %v, the first expert has %v, %v and %v", e.Gate.Format, e.Up.Format, e.Down.Format,
				first.Gate.Format, first.Up.Format, first.Down.Format)
		}
		c.within("expert", i)
		if !c.ok() {
			return
		}
	}
}

// expertBiases requires the biases of all of an expert's products, or none.
func (c *checker) expertBiases(e *Expert, biased bool) {
	if !biased {
		if c.ok() && (e.Biased() || !e.UpBias.IsZero() || !e.DownBias.IsZero()) {
			c.fail("biases, where the first expert has none for its gate")
		}
		return
	}
	c.floats("GateBias", e.GateBias, e.Gate.Rows)
	c.floats("UpBias", e.UpBias, e.Up.Rows)
	c.floats("DownBias", e.DownBias, e.Down.Rows)
}

// list requires n numbers in one of the two places.
func list[T int32 | float32](c *checker, name string, l *List[T], n int) span {
	switch {
	case !l.At.IsZero() && l.Host != nil:
		c.fail("%s lie on the device and travel with the operation", name)
	case !l.At.IsZero():
		return c.floats(name, l.At, n)
	case c.ok() && len(l.Host) != n:
		c.fail("%d %s, want %d", len(l.Host), name, n)
	}
	return span{}
}

func (o *Experts) Check() error { return o.check(false) }

// check is Check for an operation whose table earlier operations of its Commands may write.
func (o *Experts) check(tabulated bool) error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.positive("TopK", o.TopK)
	switch {
	case o.Table == nil:
		c.fail("no Table")
	// The Tabulate that writes a table checks its experts, so a token need not.
	case o.Table.written, tabulated:
	case !o.Table.At.IsZero():
		c.fail("the table's form on the device was never written")
	default:
		c.experts(o.Table.Experts)
	}
	if !c.ok() {
		return c.result()
	}
	o.Clamp.check(&c)
	inner, dim := o.Table.Experts[0].Gate.Rows, o.Table.Experts[0].Gate.Cols
	pairs := product(o.Rows, o.TopK)
	x := c.dense("X", o.X, o.Rows, dim)
	y := c.dense("Y", o.Y, pairs, dim)
	s := c.dense("Scratch", o.Scratch, pairs, product(2, inner))
	p := list(&c, "Picks", &o.Picks, pairs)
	c.apart("X", x, "Y", y)
	c.apart("X", x, "Scratch", s)
	c.apart("Y", y, "Scratch", s)
	c.apart("Picks", p, "Y", y)
	c.apart("Picks", p, "Scratch", s)
	for i, e := range o.Picks.Host {
		if c.ok() && int(e) >= len(o.Table.Experts) {
			c.fail("pick %d at index %d is outside the %d experts there are", e, i, len(o.Table.Experts))
		}
	}
	return c.result()
}

func (o *Combine) Check() error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.positive("TopK", o.TopK)
	c.positive("Dim", o.Dim)
	routed := c.dense("Routed", o.Routed, product(o.Rows, o.TopK), o.Dim)
	residual := c.dense("Residual", o.Residual, o.Rows, o.Dim)
	y := c.dense("Y", o.Y, o.Rows, o.Dim)
	c.apart("Weights", list(&c, "Weights", &o.Weights, product(o.Rows, o.TopK)), "Y", y)
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

func (o *Route) Check() error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.positive("Experts", o.Experts)
	c.positive("TopK", o.TopK)
	if c.ok() && o.TopK > o.Experts {
		c.fail("%d picks of %d experts", o.TopK, o.Experts)
	}
	c.expertGroups(&o.Rule, o.Experts, o.TopK)
	scores := c.dense("Scores", o.Scores, o.Rows, o.Experts)
	picks := c.dense("Picks", o.Picks, o.Rows, o.TopK)
	weights := c.dense("Weights", o.Weights, o.Rows, o.TopK)
	c.apart("Scores", scores, "Picks", picks)
	c.apart("Scores", scores, "Weights", weights)
	c.apart("Picks", picks, "Weights", weights)
	if !o.Bias.IsZero() {
		bias := c.floats("Bias", o.Bias, o.Experts)
		c.apart("Bias", bias, "Picks", picks)
		c.apart("Bias", bias, "Weights", weights)
	}
	return c.result()
}

// expertGroups requires groups of equal size, and that the groups kept hold k experts.
func (c *checker) expertGroups(r *route.Rule, experts, k int) {
	if n := r.NGroup; c.ok() && n > 1 && (experts%n != 0 || r.TopKGroup < 1 || r.TopKGroup > n || r.TopKGroup*(experts/n) < k) {
		c.fail("%d of %d groups of %d experts for %d picks", r.TopKGroup, n, experts, k)
	}
}
