package quant

import "math"

// BF16ToF32 widens a bf16 number. It is exact.
func BF16ToF32(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// F32ToBF16 rounds to the nearest bf16 number, ties to even. Numbers beyond the largest become
// infinite. A NaN becomes a quiet NaN of the same sign.
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if f != f {
		// the payload may lie in the lower half only: keep the result from being an infinity
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// F16ToF32 widens an IEEE half-precision number. It is exact.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 0x1f
	frac := uint32(h & 0x3ff)
	switch {
	case exp == 0x1f: // infinity, NaN
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	case exp == 0: // zero, subnormal: frac · 2^-24
		f := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	default:
		return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
	}
}
