package gpu

// Gather copies rows: Y[i, :] = X[Rows[i], :]. X has XRows rows of Dim, Y is [len(Rows), Dim].
type Gather struct {
	X     View
	XRows int
	Rows  []int32
	Y     View
	Dim   int
}

// Kind returns the kind, see Op.
func (o *Gather) Kind() Kind { return KindGather }

// Name returns the operation's name, see Op.
func (o *Gather) Name() string { return "gather" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *Gather) Check() error {
	c := checker{op: o.Name()}
	c.positive("number of Rows", len(o.Rows))
	c.positive("XRows", o.XRows)
	c.positive("Dim", o.Dim)
	x := c.dense("X", o.X, o.XRows, o.Dim)
	y := c.dense("Y", o.Y, len(o.Rows), o.Dim)
	c.indices("row", o.Rows, o.XRows)
	c.apart("X", x, "Y", y)
	return c.result()
}
