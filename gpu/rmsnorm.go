package gpu

// RMSNorm normalises vectors: y = w ⊙ x·(1/sqrt(mean(x²)+Eps)). W is float32 [Dim]; the zero View
// means all ones. Vector v of X begins at v·XStride floats, of Y at v·YStride; strides of 0 mean
// Dim. X and Y may be the same view with the same stride. With vectors = rows·heads this is the
// per-head norm.
type RMSNorm struct {
	X, W, Y          View
	Vectors, Dim     int
	XStride, YStride int // float32s
	Eps              float32
}

// Kind returns the kind, see Op.
func (o *RMSNorm) Kind() Kind { return KindRMSNorm }

// Name returns the operation's name, see Op.
func (o *RMSNorm) Name() string { return "rmsnorm" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *RMSNorm) Check() error {
	c := checker{op: o.Name()}
	c.positive("Vectors", o.Vectors)
	c.positive("Dim", o.Dim)
	c.eps(o.Eps)
	x := c.strided("X", o.X, o.Vectors, o.Dim, or(o.XStride, o.Dim))
	y := c.strided("Y", o.Y, o.Vectors, o.Dim, or(o.YStride, o.Dim))
	c.sameOrApart("X", x, "Y", y)
	if !o.W.IsZero() {
		c.apart("W", c.floats("W", o.W, o.Dim), "Y", y)
	}
	return c.result()
}
