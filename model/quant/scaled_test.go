package quant_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/moeflux/moeflux-actor/model/quant"
)

func f32s(numbers ...float32) (out []byte) {
	for _, v := range numbers {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

// Codes with float32 scales, by hand: 0.1 as float16 is 0x2e66 = 0.0999755859375, of which bf16
// holds no more than 0.10009765625.
func TestUnpackAffineF32(t *testing.T) {
	const tenth = 0.0999755859375
	scales, biases := f32s(tenth), f32s(-7*tenth)
	four, err := quant.AffineF32(4, 32)
	if err != nil {
		t.Fatal(err)
	}
	weight, got := make([]byte, 16), make([]float32, 32)
	weight[0], weight[15] = 0x7f, 0x80
	four.Unpack(got, 32, weight, scales, biases, 0)
	for i, want := range map[int]float32{0: 8 * tenth, 1: 0, 2: -7 * tenth, 30: -7 * tenth, 31: tenth} {
		if got[i] != want {
			t.Errorf("4 bits, element %d: got %v, want %v", i, got[i], want)
		}
	}
	eight, err := quant.AffineF32(8, 32)
	if err != nil {
		t.Fatal(err)
	}
	weight = make([]byte, 32)
	weight[1], weight[31] = 7, 255
	eight.Unpack(got, 32, weight, scales, biases, 0)
	for i, want := range map[int]float32{0: -7 * tenth, 1: 0, 31: 248 * tenth} {
		if got[i] != want {
			t.Errorf("8 bits, element %d: got %v, want %v", i, got[i], want)
		}
	}
	for _, bits := range []int{2, 3, 16} {
		if f, err := quant.AffineF32(bits, 64); err == nil {
			t.Errorf("%d bits: got %v, want an error", bits, f)
		}
	}
	if f, err := quant.AffineF32(4, 16); err == nil {
		t.Errorf("groups of 16: got %v, want an error", f)
	}
}

// All codes of FP8 by the definition of e4m3: a sign, 4 bits of exponent less 7, 3 bits of
// fraction; exponent 0 is that of 1 without the leading 1, and all ones are no number.
func TestUnpackFP8(t *testing.T) {
	f, err := quant.FP8(128)
	if err != nil {
		t.Fatal(err)
	}
	weight, got := make([]byte, 256), make([]float32, 256)
	for i := range weight {
		weight[i] = byte(i)
	}
	f.Unpack(got, 256, weight, f32s(3, 0.125), nil, 0)
	for i, v := range got {
		exp, frac, scale := i>>3&15, float64(i&7)/8, 3.
		want := math.Ldexp(1+frac, exp-7)
		if exp == 0 {
			want = math.Ldexp(frac, -6)
		}
		if i > 127 {
			want, scale = -want, 0.125
		}
		want *= scale
		if odd := i&0x7f == 0x7f; odd != (v != v) || !odd && float64(v) != want {
			t.Errorf("code %#x: got %v, want %v", i, v, want)
		}
	}
	if got[0x7e] != 3*448 || got[1] != 3.0/512 {
		t.Errorf("greatest and least: got %v and %v, want %v and %v", got[0x7e], got[1], 3*448, 3.0/512)
	}
	if _, err := quant.FP8(64); err == nil {
		t.Error("groups of 64: want an error")
	}
}

// NVFP4 by hand: codes as in MXFP4, scale 0x38 is 1, 0x01 the least and 0x7e the greatest; the
// row's factor multiplies all. 0x7f is no number, and 0x80 has a sign.
func TestUnpackNVFP4(t *testing.T) {
	f := quant.NVFP4
	weight, scales, factors := make([]byte, 2*24), []byte{0x38, 0x01, 0x7e, 0x3c, 0, 0x30}, f32s(0.5, -3)
	for i := range 8 { // all codes in order
		weight[i] = byte(2*i) | byte(2*i+1)<<4
	}
	weight[8], weight[16], weight[24], weight[32], weight[40] = 0x71, 0xf7, 0x2a, 0x77, 0x12
	row := make([]float32, 48)
	f.Unpack(row, 48, weight, scales, factors, 0)
	for i, want := range []float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6} {
		if row[i] != want/2 {
			t.Errorf("code %d: got %v, want %v", i, row[i], want/2)
		}
	}
	for i, want := range map[int]float32{16: 0.5 / 512 / 2, 17: 6.0 / 512 / 2, 32: 6 * 448 / 2, 33: -6 * 448 / 2} {
		if row[i] != want {
			t.Errorf("element %d: got %v, want %v", i, row[i], want)
		}
	}
	f.Unpack(row, 48, weight, scales, factors, 1)
	for i, want := range map[int]float32{0: -1 * 1.5 * -3, 1: 1 * 1.5 * -3, 16: 0, 32: 1 * 0.5 * -3, 33: 0.5 * 0.5 * -3} {
		if row[i] != want {
			t.Errorf("second row, element %d: got %v, want %v", i, row[i], want)
		}
	}
	for bad, at := range map[byte]int{0x7f: 1, 0x80: 1, 0xff: 1, 0x7e: -1, 0: -1} {
		if i := f.NoNumber([]byte{0x38, bad}); i != at {
			t.Errorf("NoNumber of %#x: got %d, want %d", bad, i, at)
		}
	}
}
