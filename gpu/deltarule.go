package gpu

// DeltaRule is the gated delta rule, row after row. QKV is dense [rows, 2·KeyHeads·KeyDim +
// ValueHeads·ValueDim]: queries, keys, values, head after head. Alpha and Beta are dense [rows,
// ValueHeads]; ALog and DtBias float32 [ValueHeads]. Per row and value head h with key head h /
// (ValueHeads/KeyHeads):
//
//	q̂ = q / sqrt(Σq² + 1e-6) · KeyDim^-0.5      k̂ = k / sqrt(Σk² + 1e-6)
//	g = exp(-exp(ALog)·softplus(alpha + DtBias))   β = σ(beta)
//	S ← g·S;  δ = β·(v - S·k̂);  S ← S + δ·k̂ᵀ;  Y[r, h] = S·q̂
//
// A segment's state, StateAt bytes from State on, is S, float32 [ValueHeads, ValueDim, KeyDim],
// advanced in place. Y is dense [rows, ValueHeads, ValueDim].
type DeltaRule struct {
	QKV, Alpha, Beta, ALog, DtBias, Y      View
	KeyHeads, ValueHeads, KeyDim, ValueDim int
	StateAt                                int
	Segments                               []StateSegment
}

// Kind returns the kind, see Op.
func (o *DeltaRule) Kind() Kind { return KindDeltaRule }

// Name returns the operation's name, see Op.
func (o *DeltaRule) Name() string { return "deltarule" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *DeltaRule) Check() error {
	c := checker{op: o.Name()}
	c.positive("KeyHeads", o.KeyHeads)
	c.positive("ValueHeads", o.ValueHeads)
	c.positive("KeyDim", o.KeyDim)
	c.positive("ValueDim", o.ValueDim)
	if !c.ok() {
		return c.result()
	}
	c.divides("ValueHeads", o.ValueHeads, "KeyHeads", o.KeyHeads)
	values := product(o.ValueHeads, o.ValueDim)
	rows := c.stateSegments(o.Segments, o.StateAt, product(values, o.KeyDim))
	qkv := c.dense("QKV", o.QKV, rows, sum(product(2, product(o.KeyHeads, o.KeyDim)), values))
	alpha := c.dense("Alpha", o.Alpha, rows, o.ValueHeads)
	beta := c.dense("Beta", o.Beta, rows, o.ValueHeads)
	alog := c.floats("ALog", o.ALog, o.ValueHeads)
	bias := c.floats("DtBias", o.DtBias, o.ValueHeads)
	y := c.dense("Y", o.Y, rows, values)
	c.apart("QKV", qkv, "Y", y)
	c.apart("Alpha", alpha, "Y", y)
	c.apart("Beta", beta, "Y", y)
	c.apart("ALog", alog, "Y", y)
	c.apart("DtBias", bias, "Y", y)
	return c.result()
}
