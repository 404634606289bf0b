package gpu

// CausalConv is a depthwise causal convolution with SiLU, row after row:
//
//	Y[t, c] = silu( Σ_j W[c, j]·x_{t-(Kernel-1)+j}[c] ),  j = 0..Kernel-1; tap Kernel-1 is the newest
//
// X and Y are dense [rows, Channels] and do not overlap. W is float32 [Channels, Kernel]. A
// segment's state, StateAt bytes from State on, is float32 [Kernel-1, Channels], the last raw
// inputs, oldest first; it is read before the segment's first row and holds the newest rows
// afterwards.
type CausalConv struct {
	X, W, Y          View
	Channels, Kernel int
	StateAt          int
	Segments         []StateSegment
}

// Kind returns the kind, see Op.
func (o *CausalConv) Kind() Kind { return KindCausalConv }

// Name returns the operation's name, see Op.
func (o *CausalConv) Name() string { return "causalconv" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *CausalConv) Check() error {
	c := checker{op: o.Name()}
	c.positive("Channels", o.Channels)
	c.positive("Kernel", o.Kernel)
	rows := c.stateSegments(o.Segments, o.StateAt, product(o.Kernel-1, o.Channels))
	x := c.dense("X", o.X, rows, o.Channels)
	y := c.dense("Y", o.Y, rows, o.Channels)
	w := c.floats("W", o.W, product(o.Channels, o.Kernel))
	c.apart("X", x, "Y", y)
	c.apart("W", w, "Y", y)
	return c.result()
}
