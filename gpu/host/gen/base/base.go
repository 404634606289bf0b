// Package base lists the functions of package host that are written in assembly, and the numbers
// that all instruction sets share. The generators write their bodies: package main for AVX-512 and
// AVX2, package arm64 for NEON.
package base

import (
	"fmt"
	"log"
	"math"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// ISA is an instruction set.
type ISA struct {
	Name   string // as in the names of files and of variants
	Suffix string // of functions
	Arch   string
	Lanes  int // float32 in a vector
	// Heights are the numbers of rows of X that products of panels take, ascending from 1. A number
	// is missing if its gain over the others was not shown: see docs/experiments.md.
	Heights []int
	// Only are the names of the codings that have kernels; nil means all. Package host takes the
	// portable ones for others.
	Only []string
	// Few are the Heights of codings whose scales are neither bf16 nor powers of two: each is some
	// two hundred lines, and such files are rarer. Every number of rows is a sum of them in which 1
	// comes only by itself, since kernels of one row take one panel.
	Few   []int
	Ahead bool // has multiplyAhead
	Peak  bool // has dotPeak
	// Blocks means that the functions for blocks of GGUF files are written for it. Package host
	// takes them for all variants of the processor.
	Blocks bool
	// OneRow are the names of codings in blocks whose products of one row are written for it. Its
	// variant takes them in place of those of Blocks.
	OneRow []string
	// Dots means that it is AVX2 with products of bytes (AVX-VNNI) and has what uses these:
	// products of panels by rows of X held as int8, and dotCodes. Its variant takes all else from
	// AVX2.
	Dots bool
	// Stripes are the numbers of rows of X that products of stripes of 16 rows in blocks take.
	Stripes []int
}

// The instruction sets.
var (
	AVX512 = ISA{Name: "avx512", Suffix: "AVX512", Arch: "amd64", Lanes: 16, Heights: []int{1, 2, 3, 4, 5, 6}, Few: []int{1, 2, 3, 4, 6}, Ahead: true, Peak: true, OneRow: []string{"q4_k", "iq4_xs", "q2_k", "q3_k", "q5_k", "q6_k", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl", "mxfp4b"}, Stripes: []int{4, 8}}
	AVX2   = ISA{Name: "avx2", Suffix: "AVX2", Arch: "amd64", Lanes: 8, Heights: []int{1, 2, 3, 4}, Few: []int{1, 2, 4}, Ahead: true, Blocks: true}
	VNNI   = ISA{Name: "avxvnni", Suffix: "AVXVNNI", Arch: "amd64", Lanes: 8, Heights: []int{1, 2, 3, 4}, Only: []string{"q2", "q4", "q8", "mxfp4"}, Dots: true}
	NEON   = ISA{Name: "neon", Suffix: "NEON", Arch: "arm64", Lanes: 4, Heights: []int{1, 2, 4}, Only: []string{"q2", "q4", "q8", "mxfp4"}}
)

const (
	BlockInputs      = 64 // that an iteration of the products of rows without scales takes
	UnpackInputs     = 32 // the same, where bf16 is widened
	SoftmaxPositions = 64 // scores in a block
)

// Bits of float32 numbers. A group of inputs whose largest |x| has bits below LeastBits counts as
// zeros: its scale would not be a normal number. From InfiniteBits on it is not finite.
const (
	LeastBits    = 0x03fe0000 // 127·2^-126
	InfiniteBits = 0x7f800000
	NaNBits      = 0x7fc00000
	Bits127      = 0x42fe0000
	AbsMask      = 1<<31 - 1
)

// Swap exchanges bits within a word: those of Mask with those Shift above.
type Swap struct {
	Shift int
	Mask  uint32
}

// Swaps bring the codes of a word into a panel's order, by their bits: the word is a square or an
// oblong of codes, which is transposed.
var Swaps = map[int][]Swap{
	2: {{6, 0x00cc00cc}, {12, 0x0000f0f0}},
	4: {{8, 0x0000ff00}, {4, 0x00f000f0}},
}

// Constant is a number with a name.
type Constant struct {
	Name  string
	Value float32
}

// Exponential are the constants of e^x: x = n·ln 2 + r, e^r = 1 + r·(1 + r·(c0 + r·(c1 + …))). The
// polynomial has the least relative error, 3e-9, over |r| <= ln 2/2. Below low a result is zero,
// above high it is infinite.
var Exponential = []Constant{
	{"low", -104}, {"high", 89}, {"log2e", math.Log2E}, {"ln2high", 0.693359375}, {"ln2low", -2.12194440e-4}, {"one", 1},
	{"c0", 0.499999934478}, {"c1", 0.166665206317}, {"c2", 0.0416683880453}, {"c3", 0.00836871687973}, {"c4", 0.00138145986467},
}

// Func is a function to write. Kind names what writes it. Coding, Rows, Int8 and BF16 tell
// functions of one kind apart.
type Func struct {
	Kind, Family   string
	Name           string
	Signature, Doc string // of its declaration; Doc follows the name
	Coding         quant.Coding
	Rows           int  // of X
	Int8, BF16     bool // rows of X, of W
	Group          int  // of blocks
	Biased         bool // the same
}

const (
	panel      = "(a *byte)"
	arrange    = "(dst, src *byte, stride, blocks int)"
	dequantise = "(dst []float32, words, scales, biases []byte, shifts []uint32, group, wordStride, groupStride int)"
	multiply   = "c, a, b []float32, cStride, aStride, bStride, rows, depth, columns int, sum bool"
)

// Codings returns the codings that the instruction set has kernels for.
func (i ISA) Codings() []quant.Coding {
	return slices.DeleteFunc(quant.Codings(), func(c quant.Coding) bool {
		return i.Only != nil && !slices.Contains(i.Only, c.String())
	})
}

// heights returns the numbers of rows of X that products of a coding take.
func (i ISA) heights(c quant.Coding) []int {
	if c.ScaleBytes() == 2 || c == quant.MXFP4.Coding() {
		return i.Heights
	}
	return i.Few
}

// kinds says whether products are of rows of int8.
func kinds(c quant.Coding) []bool {
	if c.Stepped() {
		return []bool{true, false}
	}
	return []bool{false}
}

// Functions returns all functions of an instruction set.
func Functions(isa ISA) []Func {
	all := functions(isa)
	if isa.Dots {
		all = slices.DeleteFunc(all, func(f Func) bool { return !f.Int8 && f.Kind != "dotCodes" })
		for i := range all {
			all[i].Family = "dots"
		}
	}
	return all
}

func functions(isa ISA) []Func {
	var all []Func
	add := func(family, kind, signature, doc string) *Func {
		all = append(all, Func{Kind: kind, Family: family, Name: kind + isa.Suffix, Signature: signature, Doc: doc})
		return &all[len(all)-1]
	}
	for _, c := range isa.Codings() {
		for _, rows := range isa.heights(c) {
			for _, int8s := range kinds(c) {
				panels, held := "a panel", "float32"
				if isa.Name == "avx512" && rows > 1 {
					panels = "two panels"
				}
				if int8s {
					held = "int8"
				}
				f := add("panels", "product", panel, fmt.Sprintf("multiplies %s of %d-bit codes by %d rows of X held as %s. a points to a panelArgs.", panels, c.Bits(), rows, held))
				f.Name, f.Coding, f.Rows, f.Int8 = Product(isa, c, rows, int8s), c, rows, int8s
			}
		}
	}
	add("panels", "quantise", "(q *int8, scales, x *float32, group, groups int)",
		"rounds groups of group inputs, a multiple of 32, to 8 bits. Scale and sum of a group go to scales, side by side.")
	var widths []int
	for _, c := range isa.Codings() {
		if slices.Contains(widths, c.Bits()) {
			continue
		}
		widths = append(widths, c.Bits())
		f := add("panels", "arrange", arrange,
			fmt.Sprintf("arranges 16 rows of %d-bit codes, stride bytes apart, as a panel: blocks of four words of each row, at least one.", c.Bits()))
		f.Name, f.Coding = Arrange(isa, c), c
	}
	add("panels", "arrangeScales", arrange,
		"arranges 16 rows of scales or biases, stride bytes apart, as a panel: blocks of eight groups, at least one.")
	if isa.Peak {
		add("panels", "dotPeak", "(turns int)", "does turns times 24 products of 64 pairs of bytes, at least once.")
	}

	add("plain", "unpack16", "(dst *float32, row *byte, blocks int)", fmt.Sprintf("writes blocks of %d bf16, at least 1, to dst.", UnpackInputs))
	plain := func(name, signature string, rows int, bf16 bool) {
		f := add("plain", "plain", signature, fmt.Sprintf("returns the dot products of a row of W with %d of X, for blocks of %d inputs, at least 1.", rows, BlockInputs))
		f.Name, f.Rows, f.BF16 = name+isa.Suffix, rows, bf16
	}
	plain("oneBF16", "(row *byte, x *float32, blocks int) (y float32)", 1, true)
	plain("last", "(row, x *float32, blocks int) (y float32)", 1, false)
	plain("two", "(row, x0, x1 *float32, blocks int) (y0, y1 float32)", 2, false)

	vectors := func(kind, signature, doc string) *Func { return add("vectors", kind, signature, doc) }
	vectors("dot", "(x, y []float32) (sum float32)", "returns Σ x·y.")
	vectors("norm", "(y, x, w []float32, r float32)", "writes w·(x·r) to y, or x·r if w is empty.")
	vectors("gatedNorm", "(y, x, w, z []float32, r float32)", "writes w·(x·r)·silu(z) to y.")
	vectors("add", "(y, a, b []float32)", "writes a + b to y.")
	vectors("axpy", "(y, x []float32, f float32)", "adds f·x to y.")
	vectors("merge", "(y, x []float32, f, h float32)", "writes f·y + h·x to y.")
	vectors("swiglu", "(y, gate, up []float32)", "writes silu(gate)·up to y.")
	vectors("gate", "(x, gate []float32)", "multiplies x by σ(gate).")
	vectors("combine", "(y, residual, routed, weights, shared []float32, scale float32)",
		"writes residual + (Σ weights[k]·routed[k] + scale·shared) to y; shared may be empty.")
	vectors("conv", "(y, w, x0, x1, x2, x3 []float32)", "writes silu(Σ w[j]·xj) to y [n], w being [4, n].")
	vectors("rope", "(x, table []float32, heads, stride int)",
		fmt.Sprintf("rotates channels i and i+n/2 of heads whose first n lie stride floats apart; n is a multiple of %d.", 2*isa.Lanes))
	vectors("ropePairs", "(x, table []float32, heads, stride int)",
		fmt.Sprintf("rotates channels 2i and 2i+1 of heads whose first n lie stride floats apart; n is a multiple of %d.", isa.Lanes))
	for _, c := range isa.Codings() {
		f := vectors("dequantise", dequantise, "writes q·scale + bias, each step rounded. Words lie wordStride bytes apart, scales and biases groupStride.")
		f.Name, f.Coding = Dequantise(isa, c), c
	}
	vectors("widen8", "(dst []float32, codes []byte, scales []float32, group, width, codeStride, scaleStride int)",
		"writes code·scale to rows of dst [rows, width]. Rows of codes and groups of scales lie the strides apart. It may read 16 codes too many.")
	vectors("transpose8", "(dst []float32, codes []byte, scales []float32, group, width, dstStride, codeStride, scaleStride, rows int)",
		fmt.Sprintf("writes code·scale to dst, rows as columns; rows is a multiple of %d, group of 16.", isa.Lanes))
	vectors("transpose", "(dst, src []float32, dstStride, srcStride, rows, columns int)",
		fmt.Sprintf("writes src to dst, rows as columns; rows is a multiple of %d, columns of 4.", isa.Lanes))
	const product = "writes a·b to c, or adds it if sum; a is [rows, depth], b [depth, columns], c [rows, columns]"
	vectors("multiply", "("+multiply+")", product+".")
	ahead := ""
	if isa.Ahead || isa.Dots {
		ahead = " Meanwhile it fetches lines: next points to an aheadLines."
		vectors("multiplyAhead", "("+multiply+", next *byte)", product+"."+ahead)
	}
	vectors("dotCodes", "(scores []float32, q, words []byte, scales []float32, qStride, group, groups, rows int, next *byte)",
		fmt.Sprintf("multiplies queries by the keys of %d positions, both in 8 bits, see portableDotCodes; group is a multiple of 16."+ahead, SoftmaxPositions))
	vectors("softmax", "(scores, stats, acc []float32, dim int)",
		fmt.Sprintf("turns each row of %d scores into weights e^(score-max), updates the row's max and sum, and scales its acc when max grew.", SoftmaxPositions))
	vectors("delta", "(state, keys, gates, v, y []float32, vStride, yStride int)",
		fmt.Sprintf("takes %d rows of state through len(gates)/4 rows of [key, query] and [decay, β, key·query, unused].", isa.Lanes))
	if isa.Blocks {
		blocks(isa, add)
	}
	if len(isa.OneRow) > 0 {
		add("blocks", "fours", "(dst, x *byte, fours, less int)", "writes the sum of each four inputs times less to dst, for 16 of them at a time, at least once.")
	}
	for _, c := range isa.oneRows() {
		addOneRow(isa, add, c)
	}
	if len(isa.Stripes) > 0 {
		stripes(isa, add)
	}
	vectors("touch", "(mem []byte, width, stride, rows int)", "reads a byte of each line of rows of width bytes, stride bytes apart.")
	return all
}

// blocks adds the functions for blocks of GGUF files.
func blocks(isa ISA, add func(family, kind, signature, doc string) *Func) {
	for _, c := range Blocks() {
		b := c.Block()
		of := func(kind, signature, doc string) *Func {
			f := add("blocks", kind, signature, fmt.Sprintf(doc, b))
			f.Name, f.Coding = OfBlock(isa, kind, c), c
			return f
		}
		of("split", "(codes *int8, scales, biases *float32, src *byte, blocks int)", "takes blocks of %s apart, at least one, see quant.Block.Split.")
		if b.Len == 32 {
			of("apartShort", "(dst, src *byte, eights, back int)", "takes a row of blocks of %s apart for manyShort, eights of them, at least one.")
			of("manyShort", "(a *byte)", "multiplies a row of %s that apartShort has taken apart by rows of X. a points to a manyArgs.")
		}
		if b.Len == wholeBlock {
			of("whole", "(codes *int8, wholes, src *byte, blocks int)", "takes blocks of %s apart, at least one, see quant.Block.Whole.")
		}
		addOneRow(isa, add, c)
	}
	for _, group := range []int{16, 32} {
		for _, biased := range []bool{false, true} {
			kind, what := fmt.Sprintf("G%d", group), "code·scale"
			if biased {
				kind, what = kind+"Biased", what+" + bias"
			}
			f := add("blocks", "widenCodes", "(dst *float32, codes *int8, scales, biases *float32, groups int)",
				fmt.Sprintf("writes %s, rounded once, of groups of %d codes, at least one.", what, group))
			f.Name, f.Group, f.Biased = strings.Replace(f.Name, "widenCodes", "widenCodes"+kind, 1), group, biased
			f = add("blocks", "oneCodes", "(codes *int8, scales, biases, x *float32, blocks int) (y float32)",
				fmt.Sprintf("returns the product of x and numbers in groups of %d, %s, rounded once, for blocks of %d inputs, at least 1, as last%s adds up.", group, what, BlockInputs, AVX2.Suffix))
			f.Name, f.Group, f.Biased = strings.Replace(f.Name, "oneCodes", "oneCodes"+kind, 1), group, biased
			f = add("blocks", "wholeDot", "(a *byte)", fmt.Sprintf("multiplies a row of blocks of 256, in groups of %d, by rows of X. a points to a blockArgs.", group))
			f.Name, f.Group, f.Biased = strings.Replace(f.Name, "wholeDot", "wholeDot"+kind, 1), group, biased
		}
	}
	add("blocks", "arrangeShort", "(dst, x, of *byte, eights, least int)", "arranges eights of groups of 32 inputs, at least one, for oneShort kernels of a format with that Least, negated.")
	add("blocks", "halves", "(dst *float32, row *byte, blocks int)", fmt.Sprintf("writes blocks of %d fp16, at least 1, to dst.", UnpackInputs))
}

// stripes adds the functions for stripes of rows in blocks.
func stripes(isa ISA, add func(family, kind, signature, doc string) *Func) {
	for _, kind := range []struct {
		writer string
		group  int // that sums are multiplied by scales of
	}{{"stripeShort", 0}, {"stripeWhole", 16}, {"stripeWhole", 32}, {"stripeBytes", 0}} {
		for _, biased := range []bool{false, true} {
			if kind.group == 16 && biased { // whose codes are multiplied by their scales
				continue
			}
			for _, rows := range isa.Stripes {
				f := add("blocks", kind.writer, "(a *byte)", fmt.Sprintf("multiplies a stripe by %d rows of X. a points to a stripeArgs.", rows))
				f.Rows, f.Group, f.Biased = rows, kind.group, biased
				name := kind.writer
				if f.Group > 0 {
					name += fmt.Sprintf("G%d", f.Group)
				}
				if biased {
					name += "Biased"
				}
				f.Name = fmt.Sprintf("%sN%d%s", name, rows, isa.Suffix)
			}
		}
	}
	for _, biased := range []bool{false, true} {
		name, what := "scaleCodes", "multiplies codes of blocks of 256, at least one, by their scales, and adds 127."
		if biased {
			name, what = "scaleCodesBiased", "is scaleCodes for codes without a sign, to which it adds nothing."
		}
		f := add("blocks", "scaleCodes", "(codes, wholes *byte, blocks int)", what)
		f.Name, f.Biased = name+isa.Suffix, biased
	}
	add("blocks", "arrangeStripe", "(a *byte)", "arranges a row of X for stripes of blocks of 32. a points to a stripeRow.")
	add("blocks", "arrangeWhole", "(a *byte)", "arranges a row of X for stripes of blocks of 256. a points to a stripeRow.")
}

// addOneRow adds the product of a format's rows with one row of X.
func addOneRow(isa ISA, add func(family, kind, signature, doc string) *Func, c quant.Coding) {
	b := c.Block()
	f := add("blocks", oneRow(b), "(a *byte)", fmt.Sprintf("multiplies rows of %s, as they are stored, by one row of X. a points to a rowArgs.", b))
	f.Name, f.Coding = OfBlock(isa, oneRow(b), c), c
}

// wholeBlock is the length of blocks that are multiplied with whole scales.
const wholeBlock = 256

// Blocks returns the codings whose numbers are in blocks of several.
func Blocks() (all []quant.Coding) {
	for c := range quant.Coding(quant.NumCodings) {
		if b := c.Block(); b != nil && b.Len > 1 {
			all = append(all, c)
		}
	}
	return all
}

// oneRows returns the codings of OneRow.
func (i ISA) oneRows() []quant.Coding {
	return slices.DeleteFunc(Blocks(), func(c quant.Coding) bool { return !slices.Contains(i.OneRow, c.String()) })
}

// oneRow is the kind of products of a format's rows, as they are stored, with one row of X.
func oneRow(b *quant.Block) string {
	if b.Len == wholeBlock {
		return "oneWhole"
	}
	return "oneShort"
}

// OfBlock is the name of a function of a kind for a format in blocks.
func OfBlock(isa ISA, kind string, c quant.Coding) string {
	return kind + strings.ReplaceAll(c.Block().Name, "_", "") + isa.Suffix
}

// Arrange is the name of what arranges codes of c's bits.
func Arrange(isa ISA, c quant.Coding) string { return fmt.Sprintf("arrange%d%s", c.Bits(), isa.Suffix) }

// Dequantise is the name of what widens codes.
func Dequantise(isa ISA, c quant.Coding) string { return "dequantise" + c.Suffix() + isa.Suffix }

// Product is the name of a product of panels.
func Product(isa ISA, c quant.Coding, rows int, int8s bool) string {
	kind := "F32"
	if int8s {
		kind = "Int8"
	}
	return fmt.Sprintf("mul%s%sN%d%s", kind, c.Suffix(), rows, isa.Suffix)
}

// Write writes the functions of a family, all of them if it is empty, each by the writer of its
// kind.
func Write(isa ISA, family string, writers map[string]func(f Func)) {
	for _, f := range Functions(isa) {
		if family != "" && f.Family != family {
			continue
		}
		write, ok := writers[f.Kind]
		if !ok {
			log.Fatalf("gen: nothing writes %s", f.Name)
		}
		write(f)
	}
}

// Families returns the names of the families.
func Families() []string {
	var names []string
	for _, f := range slices.Concat(Functions(AVX512), Functions(AVX2), Functions(VNNI)) {
		if !slices.Contains(names, f.Family) {
			names = append(names, f.Family)
		}
	}
	return names
}
