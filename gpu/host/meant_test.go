package host

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// inputKinds says whether rows of X are rounded before they are multiplied by a format.
func inputKinds(f quant.Format) []bool {
	if f.Rounds() {
		return []bool{false, true}
	}
	return []bool{false}
}

// codesBeside returns n bytes of codes without spare capacity, all of them numbers.
func codesBeside(rng *rand.Rand, f quant.Format, n int) []byte {
	b := bytesBeside(rng, n)
	for i := range b {
		if f.Coding().String() == "fp8" && b[i]&0x7f == 0x7f {
			b[i]--
		}
	}
	return b
}

// fillNumbers makes random scales, and biases or factors.
func (m *matrix) fillNumbers(rng *rand.Rand) {
	f := m.format
	m.scales = numbers(rng, f.Coding(), f.ScaleBytes(m.rows, m.cols))
	if m.biases = numbers(rng, f.Coding(), f.BiasBytes(m.rows, m.cols)); f.Coding().Factor() {
		m.biases = f32s(rng, m.rows)
	}
}

// numbers returns n bytes of scales or biases of magnitude 1/32 or so.
func numbers(rng *rand.Rand, c quant.Coding, n int) []byte {
	switch c.ScaleBytes() {
	case 2:
		return bf16s(rng, n/2)
	case 4:
		return f32s(rng, n/4)
	}
	b := make([]byte, n)
	for i := range b { // exponents, some of the least number; as e4m3 without a sign
		b[i] = byte(119+rng.IntN(5)) * byte(min(1, rng.IntN(16)))
	}
	return b
}

// f32s returns n random float32 of magnitude 1/32 or so.
func f32s(rng *rand.Rand, n int) (b []byte) {
	for range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(rng.NormFloat64()/32)))
	}
	return b
}

func f32At(list []byte, i int) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(list[4*i:])))
}

// e2m1 are what codes of MXFP4 stand for.
var e2m1 = [16]float64{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}

// e4m3 returns what a float of 8 bits stands for: a sign, 4 bits of exponent, 3 of fraction.
func e4m3(code byte) float64 {
	exp, frac := int(code>>3&15), float64(code&7)/8
	v := math.Ldexp(1+frac, exp-7)
	if exp == 0 {
		v = math.Ldexp(frac, -6)
	}
	if code > 127 {
		return -v
	}
	return v
}

// meant returns code·scale and bias of a weight of a matrix in rows.
func (m *matrix) meant(row, i int) (p, bias float64) {
	f := m.format
	code, g := codeAt(m.row(row), i, f.Bits()), row*m.cols/f.Group()+i/f.Group()
	switch f.Coding().String() {
	case "mxfp4":
		return e2m1[code] * math.Ldexp(1, int(m.scales[g])-127), 0
	case "nvfp4":
		return e2m1[code] * e4m3(m.scales[g]) * f32At(m.biases, row), 0
	case "fp8":
		return e4m3(code) * f32At(m.scales, g), 0
	case "q4f", "q8f":
		return float64(code) * f32At(m.scales, g), f32At(m.biases, g)
	}
	if !f.Affine() {
		panic("nothing says what " + f.String() + " is")
	}
	return float64(code) * float64(bf16(m.scales, g)), float64(bf16(m.biases, g))
}
