package quant

import (
	"encoding/binary"
	"math"
)

// Formats of single numbers and of blocks of 32. In a block of 32 codes of 4 bits, byte j holds
// number j in its low half and number j+16 in its high half.

// half reads an fp16 number.
func half(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }

func unpackF32(dst []float32, b []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

func unpackBF16(dst []float32, b []byte) {
	for i := range dst {
		dst[i] = BF16ToF32(binary.LittleEndian.Uint16(b[2*i:]))
	}
}

func unpackF16(dst []float32, b []byte) {
	for i := range dst {
		dst[i] = half(b[2*i:])
	}
}

// splitShort takes a block of 32 apart: the scale, the bias if it is Biased, and codes: bytes with
// a sign, or 32 highest bits if they have 5 bits, and 16 bytes of the others. The scale is fp16, or
// of a Power a byte e, 2^(e-127) for twice what its Table has, as OCP's microscaling formats have
// it. There e = 255 stands for no number.
func (b *Block) splitShort(codes []int8, scales, biases []float32, src []byte) {
	if b.Power {
		scales[0], src = 0.5*e8m0(src[0]), src[1:]
	} else {
		scales[0], src = half(src), src[2:]
	}
	if b.Biased {
		biases[0], src = half(src), src[2:]
	}
	switch {
	case b.Table != nil:
		lookUp(codes, b.Table, src)
	case b.Bits == 4:
		nibbles(codes, src, b.Least)
	case b.Bits == 5:
		fives(codes, src, b.Least)
	default:
		for j, c := range src[:32] {
			codes[j] = int8(c)
		}
	}
}

// nibbles writes 32 codes less zero.
func nibbles(codes []int8, b []byte, zero int8) {
	for j, c := range b[:16] {
		codes[j], codes[j+16] = int8(c&15)-zero, int8(c>>4)-zero
	}
}

// fives writes 32 codes of 5 bits less zero: 32 highest bits, then 16 bytes of lower ones.
func fives(codes []int8, b []byte, zero int8) {
	nibbles(codes, b[4:], zero)
	high := binary.LittleEndian.Uint32(b)
	for j := range codes[:32] {
		codes[j] += int8(high>>j&1) << 4
	}
}

// iq4 holds what the codes of IQ4_NL and IQ4_XS stand for: steps that widen outwards.
var iq4 = Table{"iq4", [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}}

// e2m1 holds the value of every 4-bit float: a sign, 2 bits of exponent, 1 bit of fraction.
var e2m1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6}

// e2m1Halves is e2m1 in halves.
var e2m1Halves = Table{"halves", [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}}

// e8m0 widens a power of two, 2^(e-127); 255 is no number. It is exact.
func e8m0(e byte) float32 {
	switch e {
	case 0:
		return math.Float32frombits(1 << 22) // 2^-127 is subnormal
	case 255:
		return float32(math.NaN())
	}
	return math.Float32frombits(uint32(e) << 23)
}

// lookUp writes 32 codes of 4 bits that stand for numbers of a table.
func lookUp(codes []int8, t *Table, b []byte) {
	for j, c := range b[:16] {
		codes[j], codes[j+16] = t.Values[c&15], t.Values[c>>4]
	}
}
