package quant

import (
	"encoding/binary"
	"math"
)

// Formats of single numbers and of blocks of 32. In a block of 32 codes of 4 bits, byte j holds
// number j in its low half and number j+16 in its high half. d and m are fp16. A product of d and a
// code is exact in float32, so fusing it with a sum changes nothing.

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

// unpackQ4x0: d, 16 bytes of codes; d·(code-8).
func unpackQ4x0(dst []float32, b []byte) {
	d := half(b)
	for j, c := range b[2:18] {
		dst[j] = d * float32(int(c&15)-8)
		dst[j+16] = d * float32(int(c>>4)-8)
	}
}

// unpackQ4x1: d, m, 16 bytes of codes; d·code + m.
func unpackQ4x1(dst []float32, b []byte) {
	d, m := half(b), half(b[2:])
	for j, c := range b[4:20] {
		dst[j] = d*float32(c&15) + m
		dst[j+16] = d*float32(c>>4) + m
	}
}

// unpackQ5x0: d, 32 highest bits, 16 bytes of lower bits; d·(code-16).
func unpackQ5x0(dst []float32, b []byte) {
	d, high := half(b), binary.LittleEndian.Uint32(b[2:])
	for j, c := range b[6:22] {
		dst[j] = d * float32(int(c&15|bit5(high, j))-16)
		dst[j+16] = d * float32(int(c>>4|bit5(high, j+16))-16)
	}
}

// unpackQ5x1: d, m, 32 highest bits, 16 bytes of lower bits; d·code + m.
func unpackQ5x1(dst []float32, b []byte) {
	d, m, high := half(b), half(b[2:]), binary.LittleEndian.Uint32(b[4:])
	for j, c := range b[8:24] {
		dst[j] = d*float32(c&15|bit5(high, j)) + m
		dst[j+16] = d*float32(c>>4|bit5(high, j+16)) + m
	}
}

// bit5 returns bit j of high as the fifth bit of a code.
func bit5(high uint32, j int) byte { return byte(high>>j&1) << 4 }

// unpackQ8x0: d, 32 signed bytes; d·code.
func unpackQ8x0(dst []float32, b []byte) {
	d := half(b)
	for j, c := range b[2:34] {
		dst[j] = d * float32(int8(c))
	}
}

// iq4 holds what the codes of IQ4_NL and IQ4_XS stand for: steps that widen outwards.
var iq4 = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// unpackIQ4NL: d, 16 bytes of codes; d·iq4[code].
func unpackIQ4NL(dst []float32, b []byte) { unpackTable(dst, half(b), &iq4, b[2:18]) }

// e2m1 holds the value of every 4-bit float: a sign, 2 bits of exponent, 1 bit of fraction.
var e2m1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6}

// unpackMXFP4: a byte e, 16 bytes of codes; 2^(e-127)·e2m1[code], as OCP's microscaling formats
// have it. There e = 255 stands for no number.
func unpackMXFP4(dst []float32, b []byte) {
	unpackTable(dst, e8m0(b[0]), &e2m1, b[1:17])
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

// unpackTable widens 32 codes of 4 bits that stand for numbers of a table.
func unpackTable(dst []float32, d float32, table *[16]float32, codes []byte) {
	for j, c := range codes[:16] {
		dst[j] = d * table[c&15]
		dst[j+16] = d * table[c>>4]
	}
}
