package gpu

// SwiGLU is Y[r, i] = silu(Gate[r, i])·Up[r, i], or the unit that Clamp asks for, all dense [Rows,
// Dim]; Y may be Gate or Up.
type SwiGLU struct {
	Gate, Up, Y View
	Rows, Dim   int
	Clamp       Clamp
}

// Kind returns the kind, see Op.
func (o *SwiGLU) Kind() Kind { return KindSwiGLU }

// Name returns the operation's name, see Op.
func (o *SwiGLU) Name() string { return "swiglu" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *SwiGLU) Check() error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.positive("Dim", o.Dim)
	g := c.dense("Gate", o.Gate, o.Rows, o.Dim)
	u := c.dense("Up", o.Up, o.Rows, o.Dim)
	y := c.dense("Y", o.Y, o.Rows, o.Dim)
	c.sameOrApart("Gate", g, "Y", y)
	c.sameOrApart("Up", u, "Y", y)
	o.Clamp.check(&c)
	return c.result()
}

// Clamp bounds what a gated unit works on. With a Limit of 0 the unit is silu(g)·u. With one it is,
// of u between -Limit and Limit,
//
//	g·σ(Alpha·g)·(u + 1)  of min(g, Limit)   if Alpha is not 0
//	min(silu(g), Limit)·u                    if it is
//
// A NaN stays one.
type Clamp struct{ Limit, Alpha float32 }

// check reports bounds that are none.
func (k Clamp) check(c *checker) {
	if finite := k.Limit-k.Limit == 0 && k.Alpha-k.Alpha == 0; k != (Clamp{}) && !(finite && k.Limit > 0 && k.Alpha >= 0) {
		c.fail("Clamp is %v, want a limit above 0 and an alpha of at least 0, or neither", k)
	}
}
