package gpu

// SigmoidGate multiplies by a gate: X[r, h, d] *= σ(G[r, h, d]). X is dense [Rows, Heads, Dim];
// vector (r, h) of G begins at r·GRowStride + h·GHeadStride floats. PerHead means that it is one
// number, the gate of all channels.
type SigmoidGate struct {
	X, G                    View
	Rows, Heads, Dim        int
	GRowStride, GHeadStride int // float32s
	PerHead                 bool
}

// GateDim returns the numbers of a vector of G.
func (o *SigmoidGate) GateDim() int {
	if o.PerHead {
		return 1
	}
	return o.Dim
}

// Kind returns the kind, see Op.
func (o *SigmoidGate) Kind() Kind { return KindSigmoidGate }

// Name returns the operation's name, see Op.
func (o *SigmoidGate) Name() string { return "sigmoidgate" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *SigmoidGate) Check() error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.positive("Heads", o.Heads)
	c.positive("Dim", o.Dim)
	x := c.dense("X", o.X, o.Rows, product(o.Heads, o.Dim))
	g := c.heads("G", o.G, o.Rows, o.Heads, o.GateDim(), o.GRowStride, o.GHeadStride)
	c.apart("X", x, "G", g)
	return c.result()
}
