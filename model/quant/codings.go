package quant

// The sizes of groups of whole numbers.
var affineGroups = []int{32, 64, 128}

// codings is the table of formats: one row says all that the engine knows of one. What cannot be
// said so is the rule that takes a block of 256 apart, in blockk.go; the bodies of assembly that do
// it, in package host's gen; and the text of shaders, in block.metal for blocks. Tests say which of
// them a row lacks.
//
// Kernels of codes differ by the facts of a row: these formats have no text of their own.
var codings = [...]coding{
	// Numbers that stand for themselves: IEEE float32, and its upper 16 bits.
	{name: "f32", dtype: "F32", word: 4, bits: 32, widen: unpackF32, plain: &Block{Name: "F32", Type: 0, Len: 1, Size: 4, widen: unpackF32}},
	{name: "bf16", dtype: "BF16", word: 2, bits: 16, widen: unpackBF16, plain: &Block{Name: "BF16", Type: 30, Len: 1, Size: 2, widen: unpackBF16}},

	// Whole numbers in groups along the input axis that share a scale and a bias: w = q·scale +
	// bias.
	{name: "q2", dtype: "U32", word: 4, bits: 2, groups: affineGroups, scale: &scaleBF16, biased: true, step: 1},
	{name: "q4", dtype: "U32", word: 4, bits: 4, groups: affineGroups, scale: &scaleBF16, biased: true, step: 1},
	{name: "q8", dtype: "U32", word: 4, bits: 8, groups: affineGroups, scale: &scaleBF16, biased: true, step: 1},
	// Floats of 4 bits, e2m1, in groups that share a power of two: MXFP4 of OCP's microscaling
	// formats.
	{name: "mxfp4", dtype: "U32", word: 4, bits: 4, groups: []int{32}, scale: &scaleE8M0, values: e2m1[:], step: 0.5, least: -6},
	// Whole numbers whose scales and biases are float32: what was published with float16 numbers,
	// or with zero points, is seldom exact in bf16.
	{name: "q4f", dtype: "U32", word: 4, bits: 4, groups: affineGroups, scale: &scaleF32, biased: true, step: 1},
	{name: "q8f", dtype: "U32", word: 4, bits: 8, groups: affineGroups, scale: &scaleF32, biased: true, step: 1},
	// Floats of 8 bits, e4m3, in groups that share a float32 scale.
	{name: "fp8", dtype: "U32", word: 4, bits: 8, groups: []int{32, 128}, scale: &scaleF32, values: e4m3[:]},
	// Floats of 4 bits, e2m1, in groups that share a scale e4m3; a row has a float32 factor.
	{name: "nvfp4", dtype: "U32", word: 4, bits: 4, groups: []int{16}, scale: &scaleE4M3, factor: true, values: e2m1[:], step: 0.5, least: -6},

	// Numbers in the blocks of GGUF files, from exact to coarse: whatever they depend on is in the
	// block. MXFP4 is here a second time: these files have a scale beside its codes, others apart.
	inBlocks("f16", Block{Name: "F16", Type: 1, Len: 1, Size: 2, Halves: []int{0}, widen: unpackF16}),
	inBlocks("q8_0", Block{Name: "Q8_0", Type: 8, Len: 32, Size: 34, Group: 32, Bits: 8, Halves: []int{0}}),
	inBlocks("q6_k", Block{Name: "Q6_K", Type: 14, Len: 256, Size: 210, Group: 16, Least: 32, Halves: []int{208}, whole: wholeQ6K}),
	inBlocks("q5_1", Block{Name: "Q5_1", Type: 7, Len: 32, Size: 24, Group: 32, Bits: 5, Biased: true, Halves: []int{0, 2}}),
	inBlocks("q5_0", Block{Name: "Q5_0", Type: 6, Len: 32, Size: 22, Group: 32, Bits: 5, Least: 16, Halves: []int{0}}),
	inBlocks("q5_k", Block{Name: "Q5_K", Type: 13, Len: 256, Size: 176, Group: 32, Biased: true, Halves: []int{0, 2}, whole: wholeQ5K}),
	inBlocks("q4_1", Block{Name: "Q4_1", Type: 3, Len: 32, Size: 20, Group: 32, Bits: 4, Biased: true, Halves: []int{0, 2}}),
	inBlocks("q4_0", Block{Name: "Q4_0", Type: 2, Len: 32, Size: 18, Group: 32, Bits: 4, Least: 8, Halves: []int{0}}),
	inBlocks("q4_k", Block{Name: "Q4_K", Type: 12, Len: 256, Size: 144, Group: 32, Biased: true, Halves: []int{0, 2}, whole: wholeQ4K}),
	inBlocks("iq4_nl", Block{Name: "IQ4_NL", Type: 20, Len: 32, Size: 18, Group: 32, Bits: 4, Table: &iq4, Halves: []int{0}}),
	inBlocks("iq4_xs", Block{Name: "IQ4_XS", Type: 23, Len: 256, Size: 136, Group: 32, Table: &iq4, Halves: []int{0}, whole: wholeIQ4XS}),
	inBlocks("mxfp4b", Block{Name: "MXFP4", Type: 39, Len: 32, Size: 17, Group: 32, Bits: 4, Table: &e2m1Halves, Least: 12, Power: true}),
	inBlocks("q3_k", Block{Name: "Q3_K", Type: 11, Len: 256, Size: 110, Group: 16, Least: 4, Halves: []int{108}, whole: wholeQ3K}),
	inBlocks("q2_k", Block{Name: "Q2_K", Type: 10, Len: 256, Size: 84, Group: 16, Biased: true, Halves: []int{80, 82}, whole: wholeQ2K}),
}

// inBlocks defines the coding of a Block. Its name in packs is the block's, as it is in GGUF files.
func inBlocks(name string, b Block) coding {
	d := coding{name: name, dtype: b.Name, word: 1, widen: b.Unpack, block: &b}
	if b.Len == 1 {
		d.word, d.bits = b.Size, 8*b.Size
	}
	return d
}
