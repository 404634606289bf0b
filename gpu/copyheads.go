package gpu

// CopyHeads copies vectors: Y[r, h, d] = X[r, h, d], d < Dim, with the strides of HeadMatMul. X and
// Y do not overlap.
type CopyHeads struct {
	X, Y                    View
	Rows, Heads, Dim        int
	XRowStride, XHeadStride int // float32s
	YRowStride, YHeadStride int // float32s
}

// Kind returns the kind, see Op.
func (o *CopyHeads) Kind() Kind { return KindCopyHeads }

// Name returns the operation's name, see Op.
func (o *CopyHeads) Name() string { return "copyheads" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *CopyHeads) Check() error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.positive("Heads", o.Heads)
	c.positive("Dim", o.Dim)
	x := c.heads("X", o.X, o.Rows, o.Heads, o.Dim, o.XRowStride, o.XHeadStride)
	y := c.heads("Y", o.Y, o.Rows, o.Heads, o.Dim, o.YRowStride, o.YHeadStride)
	c.apart("X", x, "Y", y)
	return c.result()
}
