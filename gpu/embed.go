package gpu

// Embed looks rows up in the embedding table: Y[r, :] = Table[Tokens[r], :], dequantised.
// Y is [len(Tokens), Table.Cols].
type Embed struct {
	Table  Matrix
	Tokens []int32
	Y      View
}

// Kind returns the kind, see Op.
func (o *Embed) Kind() Kind { return KindEmbed }

// Name returns the operation's name, see Op.
func (o *Embed) Name() string { return "embed" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *Embed) Check() error {
	c := checker{op: o.Name()}
	c.positive("number of Tokens", len(o.Tokens))
	c.matrix("Table", &o.Table)
	c.indices("token", o.Tokens, o.Table.Rows)
	c.dense("Y", o.Y, len(o.Tokens), o.Table.Cols)
	return c.result()
}
