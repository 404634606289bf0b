package gpu

// GatedNorm is y = w ⊙ x·(1/sqrt(mean(x²)+Eps)) ⊙ silu(z) over vectors of Dim; X, Z, Y dense
// [Vectors, Dim], Y may be X. W is float32 [Dim].
type GatedNorm struct {
	X, W, Z, Y   View
	Vectors, Dim int
	Eps          float32
}

// Kind returns the kind, see Op.
func (o *GatedNorm) Kind() Kind { return KindGatedNorm }

// Name returns the operation's name, see Op.
func (o *GatedNorm) Name() string { return "gatednorm" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *GatedNorm) Check() error {
	c := checker{op: o.Name()}
	c.positive("Vectors", o.Vectors)
	c.positive("Dim", o.Dim)
	c.eps(o.Eps)
	x := c.dense("X", o.X, o.Vectors, o.Dim)
	z := c.dense("Z", o.Z, o.Vectors, o.Dim)
	w := c.floats("W", o.W, o.Dim)
	y := c.dense("Y", o.Y, o.Vectors, o.Dim)
	c.sameOrApart("X", x, "Y", y)
	c.apart("Z", z, "Y", y)
	c.apart("W", w, "Y", y)
	return c.result()
}
