package quant

import (
	"math"
	"testing"
)

// All 256 values against the definition, and some that are printed in the format's specification.
func TestE4M3(t *testing.T) {
	for b := range 256 {
		got := float64(E4M3ToF32(byte(b)))
		sign, exp, frac := 1.0, b>>3&15, float64(b&7)
		if b&0x80 != 0 {
			sign = -1
		}
		want := sign * math.Ldexp(8+frac, exp-7-3)
		if exp == 0 {
			want = sign * math.Ldexp(frac, -9)
		}
		if b&0x7f == 0x7f {
			if !math.IsNaN(got) {
				t.Errorf("%#x: got %v, want NaN", b, got)
			}
			continue
		}
		if got != want || math.Signbit(got) != (sign < 0) {
			t.Errorf("%#x: got %v, want %v", b, got, want)
		}
	}
	for b, want := range map[byte]float32{0x00: 0, 0x01: 0.001953125, 0x07: 0.013671875, 0x08: 0.015625, 0x38: 1, 0xb8: -1, 0x3c: 1.5, 0x40: 2, 0x77: 240, 0x7e: 448, 0xfe: -448} {
		if got := E4M3ToF32(b); got != want {
			t.Errorf("%#x: got %v, want %v", b, got, want)
		}
	}
}
