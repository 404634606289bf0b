package gpu

// Op is one operation. The types that implement it are the structs of this package, by pointer; a
// device switches over them.
type Op interface {
	// Name is the operation's name in errors and figures: "matmul".
	Name() string
	// Check reports sizes and views that do not fit. Devices call it in Submit.
	Check() error
}

// Commands collects operations for one Submit. The zero value is ready. After its ticket is done it
// may be Reset and filled again; operations are then built in memory kept from before.
type Commands struct {
	// Urgent lets a queue run the operations before, or amid, those of Commands that are not
	// urgent, see Queue.
	Urgent bool
	// Tag is the submitter's own mark. No queue looks at it.
	Tag uint8

	// Plain makes a device compute each operation by itself, also those that it would compute
	// together with the next ones. The bits are the same; whether they are can be seen so.
	Plain bool

	ops []Op

	uploads   arena[Upload]
	downloads arena[Download]
	fills     arena[Fill]
	embeds    arena[Embed]
	gathers   arena[Gather]
	norms     arena[RMSNorm]
	layers    arena[LayerNorm]
	matmuls   arena[MatMul]
	headmuls  arena[HeadMatMul]
	copies    arena[CopyHeads]
	adds      arena[Add]
	gates     arena[SigmoidGate]
	swiglus   arena[SwiGLU]
	ropes     arena[Rope]
	appends   arena[AppendKV]
	attns     arena[Attention]
	latents   arena[LatentAttention]
	chooses   arena[Choose]
	convs     arena[CausalConv]
	deltas    arena[DeltaRule]
	gnorms    arena[GatedNorm]
	tables    arena[Tabulate]
	routes    arena[Route]
	experts   arena[Experts]
	combines  arena[Combine]
	topks     arena[TopK]
	marks     arena[Mark]
}

// Ops returns the operations in order; valid until Reset.
func (c *Commands) Ops() []Op { return c.ops }

// Len returns the number of operations.
func (c *Commands) Len() int { return len(c.ops) }

// Reset empties c. What its operations pointed to is let go.
func (c *Commands) Reset() {
	c.Urgent, c.Plain, c.Tag = false, false, 0
	clear(c.ops)
	c.ops = c.ops[:0]
	c.uploads.reset()
	c.downloads.reset()
	c.fills.reset()
	c.embeds.reset()
	c.gathers.reset()
	c.norms.reset()
	c.layers.reset()
	c.matmuls.reset()
	c.headmuls.reset()
	c.copies.reset()
	c.adds.reset()
	c.gates.reset()
	c.swiglus.reset()
	c.ropes.reset()
	c.appends.reset()
	c.attns.reset()
	c.latents.reset()
	c.chooses.reset()
	c.convs.reset()
	c.deltas.reset()
	c.gnorms.reset()
	c.tables.reset()
	c.routes.reset()
	c.experts.reset()
	c.combines.reset()
	c.topks.reset()
	c.marks.reset()
}

// The Encode methods append a copy of an operation.

func (c *Commands) EncodeUpload(op Upload)           { c.ops = append(c.ops, c.uploads.put(op)) }
func (c *Commands) EncodeDownload(op Download)       { c.ops = append(c.ops, c.downloads.put(op)) }
func (c *Commands) EncodeFill(op Fill)               { c.ops = append(c.ops, c.fills.put(op)) }
func (c *Commands) EncodeEmbed(op Embed)             { c.ops = append(c.ops, c.embeds.put(op)) }
func (c *Commands) EncodeGather(op Gather)           { c.ops = append(c.ops, c.gathers.put(op)) }
func (c *Commands) EncodeRMSNorm(op RMSNorm)         { c.ops = append(c.ops, c.norms.put(op)) }
func (c *Commands) EncodeLayerNorm(op LayerNorm)     { c.ops = append(c.ops, c.layers.put(op)) }
func (c *Commands) EncodeMatMul(op MatMul)           { c.ops = append(c.ops, c.matmuls.put(op)) }
func (c *Commands) EncodeHeadMatMul(op HeadMatMul)   { c.ops = append(c.ops, c.headmuls.put(op)) }
func (c *Commands) EncodeCopyHeads(op CopyHeads)     { c.ops = append(c.ops, c.copies.put(op)) }
func (c *Commands) EncodeAdd(op Add)                 { c.ops = append(c.ops, c.adds.put(op)) }
func (c *Commands) EncodeSigmoidGate(op SigmoidGate) { c.ops = append(c.ops, c.gates.put(op)) }
func (c *Commands) EncodeSwiGLU(op SwiGLU)           { c.ops = append(c.ops, c.swiglus.put(op)) }
func (c *Commands) EncodeRope(op Rope)               { c.ops = append(c.ops, c.ropes.put(op)) }
func (c *Commands) EncodeAppendKV(op AppendKV)       { c.ops = append(c.ops, c.appends.put(op)) }
func (c *Commands) EncodeAttention(op Attention)     { c.ops = append(c.ops, c.attns.put(op)) }
func (c *Commands) EncodeLatentAttention(op LatentAttention) {
	c.ops = append(c.ops, c.latents.put(op))
}
func (c *Commands) EncodeChoose(op Choose)         { c.ops = append(c.ops, c.chooses.put(op)) }
func (c *Commands) EncodeCausalConv(op CausalConv) { c.ops = append(c.ops, c.convs.put(op)) }
func (c *Commands) EncodeDeltaRule(op DeltaRule)   { c.ops = append(c.ops, c.deltas.put(op)) }
func (c *Commands) EncodeGatedNorm(op GatedNorm)   { c.ops = append(c.ops, c.gnorms.put(op)) }
func (c *Commands) EncodeTabulate(op Tabulate)     { c.ops = append(c.ops, c.tables.put(op)) }
func (c *Commands) EncodeRoute(op Route)           { c.ops = append(c.ops, c.routes.put(op)) }
func (c *Commands) EncodeExperts(op Experts)       { c.ops = append(c.ops, c.experts.put(op)) }
func (c *Commands) EncodeCombine(op Combine)       { c.ops = append(c.ops, c.combines.put(op)) }
func (c *Commands) EncodeTopK(op TopK)             { c.ops = append(c.ops, c.topks.put(op)) }

// arena hands out pointers to values of one type and takes all of them back at once. Pointers stay
// valid while it grows, and a value's memory is used again after reset.
type arena[T any] struct {
	items []*T
	used  int
}

func (a *arena[T]) put(v T) *T {
	if a.used == len(a.items) {
		a.items = append(a.items, new(T))
	}
	p := a.items[a.used]
	a.used++
	*p = v
	return p
}

func (a *arena[T]) reset() {
	var zero T
	for _, p := range a.items[:a.used] {
		*p = zero
	}
	a.used = 0
}
