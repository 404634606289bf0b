package gpu

// Combine ends a Mixture-of-Experts layer, in this order:
//
//	acc = Σ_k Weights[r·TopK+k]·Routed[r, k, :]  (k ascending);  acc += t·Shared[r, :];  Y[r, :] = Residual[r, :] + acc
//
// t is σ(SharedGate[r]), or 1 if SharedGate is zero; without Shared the second step is left out.
// Routed is dense [Rows, TopK, Dim], the others dense [Rows, Dim], SharedGate [Rows], Weights
// [Rows, TopK]. Y may be Residual.
type Combine struct {
	Routed, Shared, SharedGate, Residual, Y View
	Weights                                 List[float32]
	Rows, TopK, Dim                         int
}

// Kind returns the kind, see Op.
func (o *Combine) Kind() Kind { return KindCombine }

// Name returns the operation's name, see Op.
func (o *Combine) Name() string { return "combine" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *Combine) Check() error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.positive("TopK", o.TopK)
	c.positive("Dim", o.Dim)
	routed := c.dense("Routed", o.Routed, product(o.Rows, o.TopK), o.Dim)
	residual := c.dense("Residual", o.Residual, o.Rows, o.Dim)
	y := c.dense("Y", o.Y, o.Rows, o.Dim)
	c.apart("Weights", list(&c, "Weights", &o.Weights, product(o.Rows, o.TopK)), "Y", y)
	c.apart("Routed", routed, "Y", y)
	c.sameOrApart("Residual", residual, "Y", y)
	if !o.Shared.IsZero() {
		c.apart("Shared", c.dense("Shared", o.Shared, o.Rows, o.Dim), "Y", y)
	}
	if !o.SharedGate.IsZero() {
		if c.ok() && o.Shared.IsZero() {
			c.fail("a SharedGate without Shared")
		}
		c.apart("SharedGate", c.floats("SharedGate", o.SharedGate, o.Rows), "Y", y)
	}
	return c.result()
}
