package gpu

// LayerNorm normalises vectors around their mean:
//
//	d = x - mean(x)      y = w ⊙ d·(1/sqrt(mean(d²)+Eps)) + b
//
// W and B are float32 [Dim]. X and Y are dense [Vectors, Dim]; Y may be X.
type LayerNorm struct {
	X, W, B, Y   View
	Vectors, Dim int
	Eps          float32
}

// Kind returns the kind, see Op.
func (o *LayerNorm) Kind() Kind { return KindLayerNorm }

// Name returns the operation's name, see Op.
func (o *LayerNorm) Name() string { return "layernorm" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *LayerNorm) Check() error {
	c := checker{op: o.Name()}
	c.positive("Vectors", o.Vectors)
	c.positive("Dim", o.Dim)
	c.eps(o.Eps)
	x := c.dense("X", o.X, o.Vectors, o.Dim)
	y := c.dense("Y", o.Y, o.Vectors, o.Dim)
	c.sameOrApart("X", x, "Y", y)
	c.apart("W", c.floats("W", o.W, o.Dim), "Y", y)
	c.apart("B", c.floats("B", o.B, o.Dim), "Y", y)
	return c.result()
}
