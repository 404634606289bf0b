package main

import "fmt"

// vec is a vector register, V0 to V31; gen a general one, R0 to R30.
type (
	vec uint32
	gen uint32
)

func (v vec) String() string { return fmt.Sprintf("V%d", uint32(v)) }
func (g gen) String() string { return fmt.Sprintf("R%d", uint32(g)) }

// op is a vector instruction that Go's assembler lacks or supports in part: its word with all
// operands zero, and the arrangement of each register. m is empty if there are two operands, n too
// if an immediate takes its place.
type op struct {
	name    string
	word    uint32
	d, n, m string
}

// Instructions of two and three vectors.
var (
	fadd   = op{"fadd", 0x4e20d400, "4s", "4s", "4s"}
	fsub   = op{"fsub", 0x4ea0d400, "4s", "4s", "4s"}
	fmul   = op{"fmul", 0x6e20dc00, "4s", "4s", "4s"}
	fdiv   = op{"fdiv", 0x6e20fc00, "4s", "4s", "4s"}
	fmla   = op{"fmla", 0x4e20cc00, "4s", "4s", "4s"} // d += n·m, rounded once
	fmls   = op{"fmls", 0x4ea0cc00, "4s", "4s", "4s"} // d -= n·m, rounded once
	fmax   = op{"fmax", 0x4e20f400, "4s", "4s", "4s"} // a NaN if either is
	fmin   = op{"fmin", 0x4ea0f400, "4s", "4s", "4s"}
	faddp  = op{"faddp", 0x6e20d400, "4s", "4s", "4s"}
	fcmgt  = op{"fcmgt", 0x6ea0e400, "4s", "4s", "4s"}
	fcmge  = op{"fcmge", 0x6e20e400, "4s", "4s", "4s"}
	fabs   = op{"fabs", 0x4ea0f800, "4s", "4s", ""}
	fneg   = op{"fneg", 0x6ea0f800, "4s", "4s", ""}
	fsqrt  = op{"fsqrt", 0x6ea1f800, "4s", "4s", ""}
	frintn = op{"frintn", 0x4e218800, "4s", "4s", ""} // to the nearest, ties to even
	fcvtns = op{"fcvtns", 0x4e21a800, "4s", "4s", ""} // the same, to int32
	scvtf  = op{"scvtf", 0x4e21d800, "4s", "4s", ""}
	ucvtf  = op{"ucvtf", 0x6e21d800, "4s", "4s", ""}

	add = op{"add", 0x4ea08400, "4s", "4s", "4s"}
	sub = op{"sub", 0x6ea08400, "4s", "4s", "4s"}
	mla = op{"mla", 0x4ea09400, "4s", "4s", "4s"}
	and = op{"and", 0x4e201c00, "16b", "16b", "16b"}
	orr = op{"orr", 0x4ea01c00, "16b", "16b", "16b"}
	eor = op{"eor", 0x6e201c00, "16b", "16b", "16b"}
	bit = op{"bit", 0x6ea01c00, "16b", "16b", "16b"} // d takes n where m has ones
	// d chooses: n where it has ones, m elsewhere
	bsl   = op{"bsl", 0x6e601c00, "16b", "16b", "16b"}
	sdot  = op{"sdot", 0x4e809400, "4s", "16b", "16b"}
	addp  = op{"addp", 0x4ea0bc00, "4s", "4s", "4s"}
	zip1  = op{"zip1", 0x4e803800, "4s", "4s", "4s"}
	zip2  = op{"zip2", 0x4e807800, "4s", "4s", "4s"}
	uzp1  = op{"uzp1", 0x4e801800, "4s", "4s", "4s"}
	uzp2  = op{"uzp2", 0x4e805800, "4s", "4s", "4s"}
	shll  = op{"shll", 0x2e613800, "4s", "4h", ""}  // of bf16 makes float32: the low half
	shll2 = op{"shll2", 0x6e613800, "4s", "8h", ""} // the high half
	uxtl  = op{"uxtl", 0x2f08a400, "8h", "8b", ""}
	uxtl2 = op{"uxtl2", 0x6f08a400, "8h", "16b", ""}
	uxtlw = op{"uxtl", 0x2f10a400, "4s", "4h", ""}
	uxth2 = op{"uxtl2", 0x6f10a400, "4s", "8h", ""}
	sxtl  = op{"sxtl", 0x0f08a400, "8h", "8b", ""}
	sxtl2 = op{"sxtl2", 0x4f08a400, "8h", "16b", ""}
	sxtlw = op{"sxtl", 0x0f10a400, "4s", "4h", ""}
	sxth2 = op{"sxtl2", 0x4f10a400, "4s", "8h", ""}
	trn1  = op{"trn1", 0x4e802800, "4s", "4s", "4s"}
	trn2  = op{"trn2", 0x4e806800, "4s", "4s", "4s"}
	zip1d = op{"zip1", 0x4ec03800, "2d", "2d", "2d"}
	zip2d = op{"zip2", 0x4ec07800, "2d", "2d", "2d"}
	uzp1h = op{"uzp1", 0x4e401800, "8h", "8h", "8h"}
	uzp2h = op{"uzp2", 0x4e405800, "8h", "8h", "8h"}
	uzp1b = op{"uzp1", 0x4e001800, "16b", "16b", "16b"}
	rev64 = op{"rev64", 0x4ea00800, "4s", "4s", ""} // words change places in pairs
	neg   = op{"neg", 0x6ea0b800, "4s", "4s", ""}
	ushl  = op{"ushl", 0x6ea04400, "4s", "4s", "4s"} // to the right where m is negative
	umax  = op{"umax", 0x6ea06400, "4s", "4s", "4s"}

	fmaxv = op{"fmaxv", 0x6e30f800, "", "4s", ""} // into a scalar: the largest lane
	umaxv = op{"umaxv", 0x6eb0a800, "", "4s", ""}
	addv  = op{"addv", 0x4eb1b800, "", "4s", ""}
	faddv = op{"faddp", 0x7e30d800, "", "2s", ""} // into a scalar: the sum of the two low lanes
)

// Instructions with an element of m: four lanes of float32 for fmla, fmls and fmul, four bytes for
// sdot.
var (
	fmlaElement = op{"fmla", 0x4f801000, "4s", "4s", "s"}
	fmlsElement = op{"fmls", 0x4f805000, "4s", "4s", "s"}
	fmulElement = op{"fmul", 0x4f809000, "4s", "4s", "s"}
	sdotElement = op{"sdot", 0x4f80e000, "4s", "16b", "4b"}
)

// Shifts by a number of bits of elements of 32 or 8 bits.
var (
	shlWords   = op{"shl", 0x4f005400, "4s", "4s", ""}
	ushrWords  = op{"ushr", 0x6f000400, "4s", "4s", ""}
	sshrWords  = op{"sshr", 0x4f000400, "4s", "4s", ""}
	ushrBytes  = op{"ushr", 0x6f000400, "16b", "16b", ""}
	ushllWords = op{"ushll", 0x2f00a400, "4s", "4h", ""} // of half-words to words
)

func named(v vec, arrangement string) string {
	if arrangement == "" {
		return fmt.Sprintf("s%d", v)
	}
	return fmt.Sprintf("v%d.%s", v, arrangement)
}

// three encodes o with three vectors, two with two. The text is the instruction as GNU's assembler
// writes it.
func (o op) three(d, n, m vec) (uint32, string) {
	return o.word | uint32(m)<<16 | uint32(n)<<5 | uint32(d),
		fmt.Sprintf("%s %s, %s, %s", o.name, named(d, o.d), named(n, o.n), named(m, o.m))
}

func (o op) two(d, n vec) (uint32, string) {
	text := fmt.Sprintf("%s %s, %s", o.name, named(d, o.d), named(n, o.n))
	if o == shll || o == shll2 {
		text += ", #16"
	}
	return o.word | uint32(n)<<5 | uint32(d), text
}

// element encodes o with element i, 0 to 3, of m.
func (o op) element(d, n, m vec, i int) (uint32, string) {
	index := uint32(i&1)<<21 | uint32(i>>1)<<11
	return o.word | index | uint32(m)<<16 | uint32(n)<<5 | uint32(d),
		fmt.Sprintf("%s %s, %s, v%d.%s[%d]", o.name, named(d, o.d), named(n, o.n), m, o.m, i)
}

// shift encodes o by bits, 1 to one less than the width of an element.
func (o op) shift(d, n vec, bits int) (uint32, string) {
	width := 32
	if o.d == "16b" {
		width = 8
	}
	place := width + bits
	switch o {
	case ushllWords:
		place = 16 + bits
	case ushrWords, sshrWords, ushrBytes:
		place = 2*width - bits
	}
	return o.word | uint32(place)<<16 | uint32(n)<<5 | uint32(d),
		fmt.Sprintf("%s %s, %s, #%d", o.name, named(d, o.d), named(n, o.n), bits)
}

// dupWord copies word i of n, 0 to 3, to all lanes of d; dupRegister the low word of a general
// register.
func dupWord(d, n vec, i int) (uint32, string) {
	return 0x4e040400 | uint32(i)<<19 | uint32(n)<<5 | uint32(d), fmt.Sprintf("dup v%d.4s, v%d.s[%d]", d, n, i)
}

func dupRegister(d vec, n gen) (uint32, string) {
	return 0x4e040c00 | uint32(n)<<5 | uint32(d), fmt.Sprintf("dup v%d.4s, w%d", d, n)
}

// lookup sets each byte of d to the byte of table that the one of n numbers, to 0 from 16 on.
func lookup(d, table, n vec) (uint32, string) {
	return 0x4e000000 | uint32(n)<<16 | uint32(table)<<5 | uint32(d), fmt.Sprintf("tbl v%d.16b, {v%d.16b}, v%d.16b", d, table, n)
}

// fixed is scvtf of numbers of 32 bits of which the last ones, 1 to 32, are a fraction.
func fixed(d, n vec, bits int) (uint32, string) {
	return 0x4f00e400 | uint32(64-bits)<<16 | uint32(n)<<5 | uint32(d), fmt.Sprintf("scvtf v%d.4s, v%d.4s, #%d", d, n, bits)
}

// fill sets all bytes of d to b.
func fill(d vec, b uint8) (uint32, string) {
	return 0x4f00e400 | uint32(b>>5)<<16 | uint32(b&31)<<5 | uint32(d), fmt.Sprintf("movi v%d.16b, #%d", d, b)
}

// scalar is an instruction of single floats.
type scalar struct {
	name string
	word uint32
}

var (
	faddScalar = scalar{"fadd", 0x1e202800}
	fmulScalar = scalar{"fmul", 0x1e200800}
)

func (o scalar) three(d, n, m vec) (uint32, string) {
	return o.word | uint32(m)<<16 | uint32(n)<<5 | uint32(d), fmt.Sprintf("%s s%d, s%d, s%d", o.name, d, n, m)
}
