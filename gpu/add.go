package gpu

// Add adds elementwise: Y[i] = A[i] + B[i], i < N. Y may be A or B.
type Add struct {
	A, B, Y View
	N       int // float32s
}

// Kind returns the kind, see Op.
func (o *Add) Kind() Kind { return KindAdd }

// Name returns the operation's name, see Op.
func (o *Add) Name() string { return "add" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *Add) Check() error {
	c := checker{op: o.Name()}
	c.positive("N", o.N)
	a := c.floats("A", o.A, o.N)
	b := c.floats("B", o.B, o.N)
	y := c.floats("Y", o.Y, o.N)
	c.sameOrApart("A", a, "Y", y)
	c.sameOrApart("B", b, "Y", y)
	return c.result()
}
