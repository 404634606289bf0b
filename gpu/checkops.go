package gpu

import "math"

// Name returns the operation's name, see Op.

func (o *Upload) Name() string          { return "upload" }
func (o *Download) Name() string        { return "download" }
func (o *Fill) Name() string            { return "fill" }
func (o *Embed) Name() string           { return "embed" }
func (o *Gather) Name() string          { return "gather" }
func (o *RMSNorm) Name() string         { return "rmsnorm" }
func (o *MatMul) Name() string          { return "matmul" }
func (o *HeadMatMul) Name() string      { return "headmatmul" }
func (o *CopyHeads) Name() string       { return "copyheads" }
func (o *Add) Name() string             { return "add" }
func (o *SigmoidGate) Name() string     { return "sigmoidgate" }
func (o *SwiGLU) Name() string          { return "swiglu" }
func (o *Rope) Name() string            { return "rope" }
func (o *AppendKV) Name() string        { return "appendkv" }
func (o *Attention) Name() string       { return "attention" }
func (o *LatentAttention) Name() string { return "latentattention" }
func (o *CausalConv) Name() string      { return "causalconv" }
func (o *DeltaRule) Name() string       { return "deltarule" }
func (o *GatedNorm) Name() string       { return "gatednorm" }
func (o *Tabulate) Name() string        { return "tabulate" }
func (o *Route) Name() string           { return "route" }
func (o *Experts) Name() string         { return "experts" }
func (o *Combine) Name() string         { return "combine" }
func (o *TopK) Name() string            { return "topk" }

// Kind returns the kind, see Op.

func (o *Upload) Kind() Kind          { return KindUpload }
func (o *Download) Kind() Kind        { return KindDownload }
func (o *Fill) Kind() Kind            { return KindFill }
func (o *Embed) Kind() Kind           { return KindEmbed }
func (o *Gather) Kind() Kind          { return KindGather }
func (o *RMSNorm) Kind() Kind         { return KindRMSNorm }
func (o *MatMul) Kind() Kind          { return KindMatMul }
func (o *HeadMatMul) Kind() Kind      { return KindHeadMatMul }
func (o *CopyHeads) Kind() Kind       { return KindCopyHeads }
func (o *Add) Kind() Kind             { return KindAdd }
func (o *SigmoidGate) Kind() Kind     { return KindSigmoidGate }
func (o *SwiGLU) Kind() Kind          { return KindSwiGLU }
func (o *Rope) Kind() Kind            { return KindRope }
func (o *AppendKV) Kind() Kind        { return KindAppendKV }
func (o *Attention) Kind() Kind       { return KindAttention }
func (o *LatentAttention) Kind() Kind { return KindLatentAttention }
func (o *CausalConv) Kind() Kind      { return KindCausalConv }
func (o *DeltaRule) Kind() Kind       { return KindDeltaRule }
func (o *GatedNorm) Kind() Kind       { return KindGatedNorm }
func (o *Tabulate) Kind() Kind        { return KindTabulate }
func (o *Route) Kind() Kind           { return KindRoute }
func (o *Experts) Kind() Kind         { return KindExperts }
func (o *Combine) Kind() Kind         { return KindCombine }
func (o *TopK) Kind() Kind            { return KindTopK }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.

func (o *Upload) Check() error {
	c := checker{op: o.Name()}
	c.positive("bytes of Src", len(o.Src))
	c.bytes("Dst", o.Dst, len(o.Src), 1)
	return c.result()
}

func (o *Download) Check() error {
	c := checker{op: o.Name()}
	c.positive("bytes of Dst", len(o.Dst))
	c.bytes("Src", o.Src, len(o.Dst), 1)
	return c.result()
}

func (o *Fill) Check() error {
	c := checker{op: o.Name()}
	c.positive("Bytes", o.Bytes)
	c.bytes("Dst", o.Dst, o.Bytes, 1)
	return c.result()
}

func (o *Embed) Check() error {
	c := checker{op: o.Name()}
	c.positive("number of Tokens", len(o.Tokens))
	c.matrix("Table", &o.Table)
	c.indices("token", o.Tokens, o.Table.Rows)
	c.dense("Y", o.Y, len(o.Tokens), o.Table.Cols)
	return c.result()
}

func (o *Gather) Check() error {
	c := checker{op: o.Name()}
	c.positive("number of Rows", len(o.Rows))
	c.positive("XRows", o.XRows)
	c.positive("Dim", o.Dim)
	x := c.dense("X", o.X, o.XRows, o.Dim)
	y := c.dense("Y", o.Y, len(o.Rows), o.Dim)
	c.indices("row", o.Rows, o.XRows)
	c.apart("X", x, "Y", y)
	return c.result()
}

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

func (o *Add) Check() error {
	c := checker{op: o.Name()}
	c.positive("N", o.N)
	a := c.floats("A", o.A, o.N)
	b := c.floats("B", o.B, o.N)
	y := c.floats("Y", o.Y, o.N)
	c.sameOrApart("A", a, "Y", y)
	c.sameOrApart("B", b, "Y", y)
	return c.result()
}

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

func (o *SwiGLU) Check() error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.positive("Dim", o.Dim)
	g := c.dense("Gate", o.Gate, o.Rows, o.Dim)
	u := c.dense("Up", o.Up, o.Rows, o.Dim)
	y := c.dense("Y", o.Y, o.Rows, o.Dim)
	c.sameOrApart("Gate", g, "Y", y)
	c.sameOrApart("Up", u, "Y", y)
	o.Clamp.check(&c)
	return c.result()
}

func (o *Rope) Check() error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.positive("Heads", o.Heads)
	c.positive("Rotary", o.Rotary)
	if c.ok() && o.Rotary%2 != 0 {
		c.fail("Rotary is %d, want an even number", o.Rotary)
	}
	x := c.heads("X", o.X, o.Rows, o.Heads, o.Rotary, o.RowStride, o.HeadStride)
	t := c.dense("Table", o.Table, o.Rows, o.Rotary)
	c.apart("X", x, "Table", t)
	return c.result()
}

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

func (o *TopK) Check() error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.positive("Vocab", o.Vocab)
	c.positive("K", o.K)
	if c.ok() && (o.K > MaxTopK || o.K > o.Vocab) {
		c.fail("K is %d, want at most %d and the %d of the vocabulary", o.K, MaxTopK, o.Vocab)
	}
	if c.ok() && o.Vocab > math.MaxInt32 {
		c.fail("Vocab is %d, want at most %d", o.Vocab, math.MaxInt32)
	}
	l := c.dense("Logits", o.Logits, o.Rows, o.Vocab)
	v := c.dense("Values", o.Values, o.Rows, o.K)
	i := c.dense("Indices", o.Indices, o.Rows, o.K)
	s := c.dense("Stats", o.Stats, o.Rows, 2)
	c.apart("Logits", l, "Values", v)
	c.apart("Logits", l, "Indices", i)
	c.apart("Logits", l, "Stats", s)
	c.apart("Values", v, "Indices", i)
	c.apart("Values", v, "Stats", s)
	c.apart("Indices", i, "Stats", s)
	return c.result()
}
