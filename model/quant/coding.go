package quant

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

// Coding is how the words of a matrix hold its numbers, and what numbers each group of them shares.
// Kernels are written for a coding: tables of them are indexed by it, and the generators read the
// facts that they need from it. A Coding is an index in codings, the one place where it is defined.
type Coding uint8

// NumCodings is how many there are.
const NumCodings = len(codings)

// coding is a Coding's definition.
type coding struct {
	name  string
	dtype string // of the numbers or words of codes in files, as in safetensors
	word  int    // bytes of such an element
	bits  int    // of a number or code
	// widen widens numbers that stand for themselves, or blocks; nil for codes.
	widen func(dst []float32, src []byte)
	block *Block // how numbers in blocks are stored; nil for others
	plain *Block // what GGUF files call numbers that stand for themselves; nil for others

	// The rest is of codes.
	groups []int       // sizes of groups: inputs that share a scale
	scale  *groupFloat // of a group
	biased bool        // a group has a bias, too, stored as the scale is
	// A row has a float32 that multiplies all its numbers. It lies where others have biases.
	factor bool
	values []float32 // what codes stand for; nil: codes stand for themselves
	// Values are whole numbers of steps above least: kernels multiply these by integers. A step of
	// 0 means that they are not.
	step, least float32
}

// groupFloat is how a scale or a bias is stored.
type groupFloat struct {
	dtype string // in files
	bytes int
	widen func(b []byte) float32
	// number reports whether a scale may be in a file: it is a number and has no sign. nil: any
	// may.
	number func(b []byte) bool
}

var scaleBF16 = groupFloat{"BF16", 2, func(b []byte) float32 { return BF16ToF32(binary.LittleEndian.Uint16(b)) }, nil}

var scaleF32 = groupFloat{"F32", 4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }, nil}

// scaleE4M3 has numbers up to 448. Kernels do not look at the sign.
var scaleE4M3 = groupFloat{"U8", 1, func(b []byte) float32 { return e4m3[b[0]] }, func(b []byte) bool { return b[0] < 0x7f }}

// noE8M0 is the E8M0 scale that is no number; others are 2^(e-127).
const noE8M0 = 255

var scaleE8M0 = groupFloat{"U8", 1, func(b []byte) float32 { return e8m0(b[0]) }, func(b []byte) bool { return b[0] != noE8M0 }}

var noBias = float32(math.Copysign(0, -1))

// Codings returns the codings whose numbers are codes.
func Codings() (all []Coding) {
	for c := range Coding(NumCodings) {
		if c.Codes() {
			all = append(all, c)
		}
	}
	return all
}

// String returns the name, which names of formats begin with: "f32", "q4".
func (c Coding) String() string { return codings[c].name }

// Suffix is what names of kernels have of the coding: "Q4".
func (c Coding) Suffix() string { return strings.ToUpper(codings[c].name) }

// Codes reports whether numbers are codes in groups; otherwise they stand for themselves.
func (c Coding) Codes() bool { return codings[c].scale != nil }

// Bits returns the bits of a number or code, 0 in blocks of several numbers.
func (c Coding) Bits() int { return codings[c].bits }

// Block returns the blocks that numbers are in, nil for other codings.
func (c Coding) Block() *Block { return codings[c].block }

// ScaleBytes returns the bytes of a group's scale, 0 without groups.
func (c Coding) ScaleBytes() int {
	if s := codings[c].scale; s != nil {
		return s.bytes
	}
	return 0
}

// BiasBytes returns the bytes of a group's bias, 0 where groups have none.
func (c Coding) BiasBytes() int {
	if codings[c].biased {
		return codings[c].scale.bytes
	}
	return 0
}

// Value returns what a code stands for before it is scaled.
func (c Coding) Value(code int) float32 {
	if v := codings[c].values; v != nil {
		return v[code]
	}
	return float32(code)
}

// Itself reports whether codes stand for themselves.
func (c Coding) Itself() bool { return codings[c].values == nil }

// Stepped reports whether values are whole numbers of steps, so that integers can multiply them.
func (c Coding) Stepped() bool { return codings[c].step != 0 }

// Factor reports whether a row has a factor: a float32 that multiplies its numbers, in place of
// biases.
func (c Coding) Factor() bool { return codings[c].factor }

// Steps says how values are whole numbers: Value is step·Whole + least.
func (c Coding) Steps() (step, least float32) { return codings[c].step, codings[c].least }

// Whole returns how many steps a code's value is above the least. It fits into 8 bits.
func (c Coding) Whole(code int) int { return int((c.Value(code) - codings[c].least) / codings[c].step) }

// Scale widens scale i of a list, exactly.
func (c Coding) Scale(list []byte, i int) float32 {
	s := codings[c].scale
	return s.widen(list[i*s.bytes : (i+1)*s.bytes])
}

// NoNumber returns the index of the first scale that no file may have, as it is no number or has a
// sign that kernels do not look at; -1 if there is none. It looks at scales of one byte; others may
// be anything.
func (f Format) NoNumber(scales []byte) int {
	s := codings[f.Coding()].scale
	if s == nil || s.number == nil {
		return -1
	}
	for i := 0; i+s.bytes <= len(scales); i += s.bytes {
		if !s.number(scales[i:]) {
			return i / s.bytes
		}
	}
	return -1
}

// NoCode returns the index of the first code of 8 bits that stands for no number, -1 if there is
// none. Codes of fewer bits always stand for one.
func (f Format) NoCode(codes []byte) int {
	d := &codings[f.Coding()]
	if d.bits != 8 || d.values == nil {
		return -1
	}
	return slices.IndexFunc(codes, func(c byte) bool { return d.values[c] != d.values[c] })
}

// RowFactor returns the factor of row i of a list, 1 where rows have none.
func (c Coding) RowFactor(list []byte, i int) float32 {
	if !codings[c].factor {
		return 1
	}
	return scaleF32.widen(list[4*i:])
}

// Bias widens bias i of a list, exactly. Where groups have none it is -0: adding that changes no
// number.
func (c Coding) Bias(list []byte, i int) float32 {
	if !codings[c].biased {
		return noBias
	}
	return c.Scale(list, i)
}
