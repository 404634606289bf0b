package gpu

// HeadMatMul multiplies each head's vector by that head's own block of one matrix. Head h's block
// is In or Out rows of W from row h·HeadRows + FirstRow on:
//
//	Y[r, h, o] = Σ_i W[h·HeadRows+FirstRow+o, i]·X[r, h, i]   i < In = W.Cols, o < Out
//
// or, if Transposed, with In rows of the block and Out = W.Cols:
//
//	Y[r, h, o] = Σ_i W[h·HeadRows+FirstRow+i, o]·X[r, h, i]
//
// Vector (r, h) of X begins at r·XRowStride + h·XHeadStride floats, of Y likewise. X and Y do not
// overlap.
type HeadMatMul struct {
	W                       Matrix
	X, Y                    View
	Rows, Heads, In, Out    int
	HeadRows, FirstRow      int
	Transposed              bool
	XRowStride, XHeadStride int // float32s
	YRowStride, YHeadStride int // float32s
}

// Kind returns the kind, see Op.
func (o *HeadMatMul) Kind() Kind { return KindHeadMatMul }

// Name returns the operation's name, see Op.
func (o *HeadMatMul) Name() string { return "headmatmul" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *HeadMatMul) Check() error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.positive("Heads", o.Heads)
	c.positive("In", o.In)
	c.positive("Out", o.Out)
	c.matrix("W", &o.W)
	used, cols := o.Out, o.In
	if o.Transposed {
		used, cols = o.In, o.Out
	}
	if c.ok() && o.W.Cols != cols {
		c.fail("W has %d columns, want %d", o.W.Cols, cols)
	}
	c.blocks("W", &o.W, o.Heads, o.HeadRows, o.FirstRow, used)
	x := c.heads("X", o.X, o.Rows, o.Heads, o.In, o.XRowStride, o.XHeadStride)
	y := c.heads("Y", o.Y, o.Rows, o.Heads, o.Out, o.YRowStride, o.YHeadStride)
	c.apart("X", x, "Y", y)
	return c.result()
}
