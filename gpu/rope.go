package gpu

// Rope rotates the first Rotary channels of each head in place. Table is float32 [Rows, Rotary/2,
// 2]: the cosine and the sine of each row's angles. Head (r, h) of X begins at r·RowStride +
// h·HeadStride floats. Channel i is paired with i+Rotary/2, or, if Interleaved, 2i with 2i+1: y_a =
// x_a·cos - x_b·sin, y_b = x_a·sin + x_b·cos. Channels from Rotary on are left alone.
type Rope struct {
	X, Table              View
	Rows, Heads, Rotary   int
	RowStride, HeadStride int // float32s
	Interleaved           bool
}

// Kind returns the kind, see Op.
func (o *Rope) Kind() Kind { return KindRope }

// Name returns the operation's name, see Op.
func (o *Rope) Name() string { return "rope" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *Rope) Check() error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.positive("Heads", o.Heads)
	c.positive("Rotary", o.Rotary)
	if c.ok() && o.Rotary%2 != 0 {
		c.fail("Rotary is %d, want an even number", o.Rotary)
	}
	x := c.heads("X", o.X, o.Rows, o.Heads, o.Rotary, o.RowStride, o.HeadStride)
	t := c.dense("Table", o.Table, o.Rows, o.Rotary)
	c.apart("X", x, "Table", t)
	return c.result()
}
