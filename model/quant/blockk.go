package quant

import "encoding/binary"

// Formats in blocks of 256 (the K-quants and IQ4_XS). d and dmin are fp16 and belong to the whole
// block; groups of 16 or 32 numbers have scales, and some a minimum, of few bits. Products of d, a
// scale and a code are exact in float32, and so are those of dmin and a minimum.

// twos writes 256 codes of two bits: a byte has one number of each 32 of its half block.
func twos(codes []int8, b []byte) {
	for i := range codes[:256] {
		codes[i] = int8(b[i>>7<<5|i&31] >> (i >> 5 & 3 * 2) & 3)
	}
}

// fours writes 256 codes of four bits: of each 64 numbers the first 32 are in low halves.
func fours(codes []int8, b []byte) {
	for i, c := range b[:128] {
		at := i>>5<<6 | i&31
		codes[at], codes[at+32] = int8(c&15), int8(c>>4)
	}
}

// oneBit returns bit i of 256: a byte has one of each 32 numbers.
func oneBit(b []byte, i int) int8 { return int8(b[i&31] >> (i >> 5) & 1) }

// wholeQ2K: 16 bytes of scale and minimum (4 bits each), 64 of codes, d, dmin;
// d·scale·code - dmin·minimum.
func wholeQ2K(codes []int8, w *Whole, b []byte) {
	for g, s := range b[:16] {
		w.Scales[g], w.Minima[g] = int16(s&15), int16(s>>4)
	}
	twos(codes, b[16:80])
}

// wholeQ3K: 32 bytes of highest bits, 64 of lower bits, 12 of scales (6 bits), d;
// d·(scale-32)·(code-4).
func wholeQ3K(codes []int8, w *Whole, b []byte) {
	s := b[96:108]
	for g := range 16 { // the lower 4 bits of scales 0 to 7 are in low halves, of 8 to 15 in high ones
		scale := s[g&7]>>(g>>3*4)&15 | s[8+g&3]>>(g>>2*2)&3<<4
		w.Scales[g] = int16(scale) - 32
	}
	twos(codes, b[32:96])
	for i := range codes[:256] {
		codes[i] += oneBit(b, i) << 2
	}
}

// center sets the minima of codes that stand for what they are above least.
func (w *Whole) center(least int16) {
	w.DMin = w.D
	for i, s := range w.Scales {
		w.Minima[i] = least * s
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

// wholeQ4K: d, dmin, 12 bytes of scales and minima, 128 of codes; d·scale·code - dmin·minimum.
func wholeQ4K(codes []int8, w *Whole, b []byte) {
	w.minima(b)
	fours(codes, b[16:144])
}

// wholeQ5K: d, dmin, 12 bytes of scales and minima, 32 of highest bits, 128 of lower bits;
// d·scale·code - dmin·minimum.
func wholeQ5K(codes []int8, w *Whole, b []byte) {
	w.minima(b)
	fours(codes, b[48:176])
	for i := range codes[:256] {
		codes[i] += oneBit(b[16:], i) << 4
	}
}

// minima sets scales and minima of 8 groups.
func (w *Whole) minima(b []byte) {
	for i := range w.Scales {
		s, m := sixBits(b[4:16], i/2)
		w.Scales[i], w.Minima[i] = int16(s), int16(m)
	}
}

// wholeQ6K: 128 bytes of lower bits, 64 of the two highest bits, 16 signed scales, d;
// d·scale·(code-32).
func wholeQ6K(codes []int8, w *Whole, b []byte) {
	for g, s := range b[192:208] {
		w.Scales[g] = int16(int8(s))
	}
	twos(codes, b[128:192])
	for i := range codes[:256] {
		low := int8(b[i>>7<<6|i&63] >> (i >> 6 & 1 * 4) & 15)
		codes[i] = codes[i]<<4 | low
	}
}

// wholeIQ4XS: d, 16 bits of the highest two bits of 8 scales, 4 bytes of their lower bits, 128 of
// codes; d·(scale-32)·iq4[code].
func wholeIQ4XS(codes []int8, w *Whole, b []byte) {
	high := binary.LittleEndian.Uint16(b[2:])
	for g := range 8 {
		scale := b[4+g>>1]>>(g&1*4)&15 | byte(high>>(2*g)&3)<<4
		w.Scales[2*g], w.Scales[2*g+1] = int16(scale)-32, int16(scale)-32
		lookUp(codes[32*g:], &iq4, b[8+16*g:])
	}
}
