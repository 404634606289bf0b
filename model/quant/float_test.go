package quant_test

import (
	"math"
	"testing"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// Every bf16 number survives the round trip. NaNs stay NaNs of the same sign.
func TestBF16RoundTrip(t *testing.T) {
	for i := range 1 << 16 {
		b := uint16(i)
		f := quant.BF16ToF32(b)
		got := quant.F32ToBF16(f)
		if f != f {
			if g := quant.BF16ToF32(got); g == g || got>>15 != b>>15 {
				t.Errorf("F32ToBF16 of the NaN %#04x: got %#04x, want a NaN of the same sign", b, got)
			}
			continue
		}
		if got != b {
			t.Errorf("F32ToBF16(BF16ToF32(%#04x)): got %#04x", b, got)
		}
	}
}

// Rounding must give the nearer of the two neighbours, which the test finds by comparing distances
// in float64.
func TestF32ToBF16Nearest(t *testing.T) {
	check := func(bits uint32) {
		f := math.Float32frombits(bits)
		lo := uint16(bits >> 16) // towards zero
		hi := lo + 1
		got := quant.F32ToBF16(f)
		// The step above the greatest finite number is that of an unbounded exponent.
		value := func(b uint16) float64 {
			if b&0x7fff == 0x7f80 {
				return math.Copysign(math.Ldexp(1, 128), float64(f))
			}
			return float64(quant.BF16ToF32(b))
		}
		dlo, dhi := math.Abs(float64(f)-value(lo)), math.Abs(value(hi)-float64(f))
		want := lo
		if dhi < dlo || dhi == dlo && lo&1 == 1 {
			want = hi
		}
		if got != want {
			t.Errorf("F32ToBF16(%v = %#08x): got %#04x, want %#04x", f, bits, got, want)
		}
	}
	for exp := range uint32(255) {
		for _, frac := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x17fff, 0x18000, 0x18001, 0x7f7fff, 0x7f8000, 0x7fffff} {
			for _, sign := range []uint32{0, 1 << 31} {
				check(sign | exp<<23 | frac)
			}
		}
	}
	for _, special := range []struct {
		bits uint32
		want uint16
	}{{0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0xff80ffff, 0xffc0}, {0x7fc12345, 0x7fc1}} {
		if got := quant.F32ToBF16(math.Float32frombits(special.bits)); got != special.want {
			t.Errorf("F32ToBF16(%#08x): got %#04x, want %#04x", special.bits, got, special.want)
		}
	}
}

// All half-precision numbers are compared with their definition.
func TestF16ToF32(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		exp, frac := int(h>>10&0x1f), float64(h&0x3ff)
		want := math.Ldexp(1+frac/1024, exp-15)
		switch {
		case exp == 0:
			want = math.Ldexp(frac, -24)
		case exp == 31 && frac == 0:
			want = math.Inf(1)
		case exp == 31:
			want = math.NaN()
		}
		if h>>15 == 1 {
			want = -want
		}
		got := quant.F16ToF32(h)
		if math.IsNaN(want) {
			if got == got {
				t.Errorf("F16ToF32(%#04x): got %v, want NaN", h, got)
			}
		} else if math.Float32bits(got) != math.Float32bits(float32(want)) {
			t.Errorf("F16ToF32(%#04x): got %v, want %v", h, got, want)
		}
	}
}
