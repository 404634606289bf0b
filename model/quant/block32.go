package quant

import (
	"encoding/binary"
	"math"
)

// Formats of single numbers and of blocks of 32. In a block of 32 codes of 4 bits, byte j holds
// number j in its low half and number j+16 in its high half. d and m are fp16.

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

// splitQ4x0: d, 16 bytes of codes; d·(code-8).
func splitQ4x0(codes []int8, scales, _ []float32, b []byte) {
	scales[0] = half(b)
	nibbles(codes, b[2:18], 8)
}

// splitQ4x1: d, m, 16 bytes of codes; d·code + m.
func splitQ4x1(codes []int8, scales, biases []float32, b []byte) {
	scales[0], biases[0] = half(b), half(b[2:])
	nibbles(codes, b[4:20], 0)
}

// nibbles writes 32 codes less zero.
func nibbles(codes []int8, b []byte, zero int8) {
	for j, c := range b[:16] {
		codes[j], codes[j+16] = int8(c&15)-zero, int8(c>>4)-zero
	}
}

// splitQ5x0: d, 32 highest bits, 16 bytes of lower bits; d·(code-16).
func splitQ5x0(codes []int8, scales, _ []float32, b []byte) {
	scales[0] = half(b)
	fives(codes, b[2:22], 16)
}

// splitQ5x1: d, m, 32 highest bits, 16 bytes of lower bits; d·code + m.
func splitQ5x1(codes []int8, scales, biases []float32, b []byte) {
	scales[0], biases[0] = half(b), half(b[2:])
	fives(codes, b[4:24], 0)
}

// fives writes 32 codes of 5 bits less zero: 32 highest bits, then 16 bytes of lower ones.
func fives(codes []int8, b []byte, zero int8) {
	nibbles(codes, b[4:], zero)
	high := binary.LittleEndian.Uint32(b)
	for j := range codes[:32] {
		codes[j] += int8(high>>j&1) << 4
	}
}

// splitQ8x0: d, 32 signed bytes; d·code.
func splitQ8x0(codes []int8, scales, _ []float32, b []byte) {
	scales[0] = half(b)
	for j, c := range b[2:34] {
		codes[j] = int8(c)
	}
}

// iq4 holds what the codes of IQ4_NL and IQ4_XS stand for: steps that widen outwards.
var iq4 = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// splitIQ4NL: d, 16 bytes of codes; d·iq4[code].
func splitIQ4NL(codes []int8, scales, _ []float32, b []byte) {
	scales[0] = half(b)
	lookUp(codes, &iq4, b[2:18])
}

// e2m1 holds the value of every 4-bit float: a sign, 2 bits of exponent, 1 bit of fraction.
var e2m1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6}

// e2m1Halves is e2m1 in halves.
var e2m1Halves = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// splitMXFP4: a byte e, 16 bytes of codes; 2^(e-127)·e2m1[code], as OCP's microscaling formats have
// it. There e = 255 stands for no number.
func splitMXFP4(codes []int8, scales, _ []float32, b []byte) {
	scales[0] = 0.5 * e8m0(b[0])
	lookUp(codes, &e2m1Halves, b[1:17])
}

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
func lookUp(codes []int8, table *[16]int8, b []byte) {
	for j, c := range b[:16] {
		codes[j], codes[j+16] = table[c&15], table[c>>4]
	}
}
