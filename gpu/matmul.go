package gpu

// MatMul multiplies rows by a matrix: Y[r, o] = Σ_i W[o, i]·X[r, i] + Bias[o]. Bias is float32
// [W.Rows]; the zero View means none. Row r of X begins at r·XStride floats, of Y at r·YStride; 0
// means W.Cols and W.Rows. X and Y do not overlap.
//
// Where W is affine a device may hold X as whole numbers of 24 bits for each quantisation group of
// W's inputs: an input is then off by at most 2^-23·max|x| over the group.
//
// A device may be set to round X to 8 bits, one scale for each quantisation group of W's inputs,
// where W is affine: every input becomes s·q with s = max|x|/127 over the group and q the nearest
// whole number, ties to even. Exact products never are.
type MatMul struct {
	W                Matrix
	X, Bias, Y       View
	Rows             int
	XStride, YStride int // float32s
	Exact            bool
}

// Kind returns the kind, see Op.
func (o *MatMul) Kind() Kind { return KindMatMul }

// Name returns the operation's name, see Op.
func (o *MatMul) Name() string { return "matmul" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *MatMul) Check() error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.matrix("W", &o.W)
	x := c.strided("X", o.X, o.Rows, o.W.Cols, or(o.XStride, o.W.Cols))
	y := c.strided("Y", o.Y, o.Rows, o.W.Rows, or(o.YStride, o.W.Rows))
	c.apart("X", x, "Y", y)
	if !o.Bias.IsZero() {
		c.apart("Bias", c.floats("Bias", o.Bias, o.W.Rows), "Y", y)
	}
	return c.result()
}
