package quant

import "math"

// e4m3 holds the value of every 8-bit float with 4 bits of exponent, bias 7, and 3 bits of
// fraction. The format has no infinities: its numbers go up to 448, and only all ones is a NaN.
var e4m3 = makeE4M3()

func makeE4M3() (t [256]float32) {
	for b := range t {
		exp, frac := b>>3&0xf, float32(b&7)
		switch {
		case exp == 0: // zero, subnormal: frac · 2^-9
			t[b] = frac / (1 << 9)
		case exp == 15 && frac == 7:
			t[b] = float32(math.NaN())
		case exp >= 7:
			t[b] = (1 + frac/8) * float32(int(1)<<(exp-7))
		default:
			t[b] = (1 + frac/8) / float32(int(1)<<(7-exp))
		}
		if b >= 0x80 {
			t[b] = -t[b]
		}
	}
	return t
}

// E4M3ToF32 widens an 8-bit float of the kind E4M3 without infinities (F8_E4M3 in safetensors). It
// is exact.
func E4M3ToF32(b byte) float32 { return e4m3[b] }
