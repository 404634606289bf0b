package gpu

// Experts runs routed experts over the rows that chose them:
//
//	Y[row, pick, :] = Down·( silu(Gate·X[row]) ⊙ (Up·X[row]) )   with the expert Table.Experts[Picks[row, pick]]
//
// Biases, where experts have them, are added to all three products. Clamp may ask for another unit
// than silu. Picks is [Rows, TopK]. A pick that is negative (or on the device none of the table) is
// no expert: its vector of Y is left alone. X is dense [Rows, H]; Y is dense [Rows, TopK, H].
// Scratch is float32 [Rows·TopK, 2·I], its contents undefined before and after.
type Experts struct {
	X, Y, Scratch View
	Rows, TopK    int
	Table         *ExpertTable
	Picks         List[int32]
	Clamp         Clamp
}

// Kind returns the kind, see Op.
func (o *Experts) Kind() Kind { return KindExperts }

// Name returns the operation's name, see Op.
func (o *Experts) Name() string { return "experts" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
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
