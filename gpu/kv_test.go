package gpu

import (
	"math"
	"math/rand/v2"
	"testing"
)

// groupsOfEverySize are groups of channels of every magnitude, with the ends of the range of
// float32 among them.
func groupsOfEverySize(yield func(x []float32) bool) {
	rng := rand.New(rand.NewPCG(1, 2))
	ends := []float32{0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, 0x1p-126, 127 * 0x1p-126, -127 * 0x1p-126, 0x1.fbfffep-120, 1, -1,
		127, 255, math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1)), float32(math.NaN())}
	for _, a := range ends {
		for _, b := range ends {
			if !yield([]float32{a, b, 0}) {
				return
			}
		}
	}
	for range 20_000 {
		x := make([]float32, 1+rng.IntN(130))
		size := rng.IntN(300) - 160
		for i := range x {
			x[i] = float32(math.Ldexp(rng.NormFloat64(), size))
			if rng.IntN(4) == 0 { // any number, or none
				x[i] = math.Float32frombits(rng.Uint32())
			}
			if rng.IntN(8) > 0 && math.Abs(float64(x[i])) > math.Ldexp(1, size) {
				x[i] = 0
			}
		}
		if !yield(x) {
			return
		}
	}
}

// What the cache holds, rounded again, gives the same codes and the same scale: states that leave
// as float32 come back bit by bit. And what it holds is at most half a step from what was kept.
func TestKVQuantiseTwice(t *testing.T) {
	for x := range groupsOfEverySize {
		codes, again, held := make([]byte, len(x)), make([]byte, len(x)), make([]float32, len(x))
		scale := KVQuantise(codes, x)
		KVWiden(held, codes, scale)
		if s := KVQuantise(again, held); math.Float32bits(s) != math.Float32bits(scale) || string(again) != string(codes) {
			t.Fatalf("%v: scale %v (%#x), again %v (%#x); codes %v, again %v", x, scale, math.Float32bits(scale), s, math.Float32bits(s), codes, again)
		}
		finite, most := true, 0.0
		for i, v := range x {
			d := math.Abs(float64(v))
			finite, most = finite && d <= math.MaxFloat32, max(most, d)
			if exact := float64(int8(codes[i])) * float64(scale); scale == scale && exact != float64(held[i]) {
				t.Fatalf("%v: %d·%v is not exact", x, int8(codes[i]), scale)
			}
		}
		if !finite {
			for i, v := range held {
				if v == v {
					t.Fatalf("%v holds no number, but is kept as %v at %d", x, v, i)
				}
			}
			continue
		}
		// Clearing bits makes the scale smaller by 2^-15 at most, for which the largest channel is
		// off by a 250th of a step; the quotient's rounding adds less than that.
		step := max(float64(scale), math.Ldexp(254, -126))
		for i, v := range x {
			if off := math.Abs(float64(v) - float64(held[i])); off > 0.5001*step {
				t.Fatalf("%v: %v is kept as %v, off by %v of a step", x, v, held[i], off/step)
			}
		}
		if most >= 127*0x1p-126 {
			top := 0
			for _, c := range codes {
				top = max(top, int(int8(c)), -int(int8(c)))
			}
			if top != 127 {
				t.Fatalf("%v: the largest code is %d, want 127", x, top)
			}
		}
	}
}

// A page of 8 bits is a quarter of one of float32, and a little for the scales.
func TestKVPartBytes(t *testing.T) {
	for _, c := range []struct {
		kv            KVLayout
		scalesAt, all int
	}{
		{KVLayout{PageRows: 64, Dim: 512}, 0, 64 * 512 * 4},
		{KVLayout{PageRows: 64, Dim: 512, Format: KVInt8, Group: 128}, 64 * 512, 64*512 + 64*4*4},
		{KVLayout{PageRows: 64, Dim: 576, Format: KVInt8, Group: 64}, 64 * 576, 64*576 + 64*9*4},
		{KVLayout{PageRows: 3, Dim: 7, Format: KVInt8, Group: 7}, 64, 128},
		{KVLayout{PageRows: 1, Dim: 64, Format: KVInt8, Group: 1}, 64, 64 + 256},
	} {
		if c.kv.Format == KVInt8 && c.kv.ScalesAt() != c.scalesAt || c.kv.PartBytes() != c.all {
			t.Errorf("%+v: scales at %d, %d bytes; want %d, %d", c.kv, c.kv.ScalesAt(), c.kv.PartBytes(), c.scalesAt, c.all)
		}
	}
}
