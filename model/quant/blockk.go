package quant

import "encoding/binary"

// Formats in blocks of 256 (the K-quants and IQ4_XS). d and dmin are fp16 and belong to the whole
// block; groups of 16 or 32 numbers have scales, and some a minimum, of few bits. Products of d, a
// scale and a code are exact in float32. So is dmin times a minimum, and their difference is
// rounded once, whether or not it is fused.

// twoBits returns code i of 256 of two bits: a byte has one number of each 32 of its half block.
func twoBits(b []byte, i int) byte { return b[i>>7<<5|i&31] >> (i >> 5 & 3 * 2) & 3 }

// fourBits returns code i of 256 of four bits: of each 64 numbers the first 32 are in low halves.
func fourBits(b []byte, i int) byte { return b[i>>6<<5|i&31] >> (i >> 5 & 1 * 4) & 15 }

// oneBit returns bit i of 256: a byte has one of each 32 numbers.
func oneBit(b []byte, i int) byte { return b[i&31] >> (i >> 5) & 1 }

// unpackQ2K: 16 bytes of scale and minimum (4 bits each), 64 of codes, d, dmin;
// d·scale·code - dmin·minimum.
func unpackQ2K(dst []float32, b []byte) {
	d, dmin := half(b[80:]), half(b[82:])
	for i := range dst {
		s := b[i>>4]
		dst[i] = d*float32(s&15)*float32(twoBits(b[16:80], i)) - dmin*float32(s>>4)
	}
}

// unpackQ3K: 32 bytes of highest bits, 64 of lower bits, 12 of scales (6 bits), d;
// d·(scale-32)·(code-4).
func unpackQ3K(dst []float32, b []byte) {
	d, scales := half(b[108:]), b[96:108]
	for i := range dst {
		g := i >> 4 // the lower 4 bits of scales 0 to 7 are in low halves, of 8 to 15 in high ones
		scale := scales[g&7]>>(g>>3*4)&15 | scales[8+g&3]>>(g>>2*2)&3<<4
		code := twoBits(b[32:96], i) | oneBit(b, i)<<2
		dst[i] = d * float32(int(scale)-32) * float32(int(code)-4)
	}
}

// sixBits returns scale and minimum of group g of 8, 6 bits each in 12 bytes: those of groups 0 to
// 3 have a byte each, whose top bits are the top bits of groups 4 to 7.
func sixBits(b []byte, g int) (scale, minimum byte) {
	if g < 4 {
		return b[g] & 63, b[g+4] & 63
	}
	return b[g+4]&15 | b[g-4]>>6<<4, b[g+4]>>4 | b[g]>>6<<4
}

// unpackQ4K: d, dmin, 12 bytes of scales and minima, 128 of codes; d·scale·code - dmin·minimum.
func unpackQ4K(dst []float32, b []byte) {
	unpackMinima(dst, b, func(i int) byte { return fourBits(b[16:], i) })
}

// unpackQ5K: d, dmin, 12 bytes of scales and minima, 32 of highest bits, 128 of lower bits;
// d·scale·code - dmin·minimum.
func unpackQ5K(dst []float32, b []byte) {
	unpackMinima(dst, b, func(i int) byte { return fourBits(b[48:], i) | oneBit(b[16:], i)<<4 })
}

// unpackMinima widens 8 groups of 32 numbers.
func unpackMinima(dst []float32, b []byte, code func(i int) byte) {
	d, dmin := half(b), half(b[2:])
	for g := range 8 {
		s, m := sixBits(b[4:16], g)
		scale, minimum := d*float32(s), dmin*float32(m)
		for i := 32 * g; i < 32*(g+1); i++ {
			dst[i] = scale*float32(code(i)) - minimum
		}
	}
}

// unpackQ6K: 128 bytes of lower bits, 64 of the two highest bits, 16 signed scales, d;
// d·scale·(code-32).
func unpackQ6K(dst []float32, b []byte) {
	d := half(b[208:])
	for i := range dst {
		low := b[i>>7<<6|i&63] >> (i >> 6 & 1 * 4) & 15
		code := low | twoBits(b[128:192], i)<<4
		dst[i] = d * float32(int8(b[192+i>>4])) * float32(int(code)-32)
	}
}

// unpackIQ4XS: d, 16 bits of the highest two bits of 8 scales, 4 bytes of their lower bits, 128 of
// codes; d·(scale-32)·iq4[code].
func unpackIQ4XS(dst []float32, b []byte) {
	d, high := half(b), binary.LittleEndian.Uint16(b[2:])
	for g := range 8 {
		scale := b[4+g>>1]>>(g&1*4)&15 | byte(high>>(2*g)&3)<<4
		unpackTable(dst[32*g:], d*float32(int(scale)-32), &iq4, b[8+16*g:])
	}
}
