package quant

import (
	"math"
	"math/rand/v2"
	"testing"
)

// span is numbers from to to-1 of a block.
type span struct {
	from, to int
	value    float32
}

var minusZero = float32(math.Copysign(0, -1))

// handMade are blocks of zero bytes but those of set, and every number that they hold. fp16 1 is
// 0x3c00, 2 is 0x4000, 0.5 is 0x3800 and -1 is 0xbc00.
var handMade = map[string]struct {
	set  map[int]byte
	want []span
}{
	"F32":  {map[int]byte{2: 0x80, 3: 0xbf}, []span{{0, 1, -1}}},
	"BF16": {map[int]byte{0: 0x20, 1: 0xc0}, []span{{0, 1, -2.5}}},
	"F16":  {map[int]byte{0: 0x01}, []span{{0, 1, 1.0 / (1 << 24)}}},
	"Q8_0": {map[int]byte{1: 0x38, 2: 0x7f, 3: 0xff, 33: 0x80}, []span{{0, 1, 63.5}, {1, 2, -0.5}, {2, 31, 0}, {31, 32, -64}}},
	"Q4_0": {map[int]byte{1: 0x3c, 2: 0x1f, 17: 0x80}, []span{{0, 1, 7}, {1, 16, -8}, {16, 17, -7}, {17, 31, -8}, {31, 32, 0}}},
	"Q4_1": {map[int]byte{1: 0x40, 3: 0xbc, 4: 0x1f}, []span{{0, 1, 29}, {1, 16, -1}, {16, 17, 1}, {17, 32, -1}}},
	"Q5_0": {map[int]byte{1: 0x3c, 2: 0x01, 5: 0x80, 6: 0x2f}, []span{{0, 1, 15}, {1, 16, -16}, {16, 17, -14}, {17, 31, -16}, {31, 32, 0}}},
	"Q5_1": {map[int]byte{1: 0x3c, 3: 0x38, 4: 0x02, 6: 0x01, 8: 0x34, 9: 0x05},
		[]span{{0, 1, 4.5}, {1, 2, 21.5}, {2, 16, 0.5}, {16, 17, 19.5}, {17, 32, 0.5}}},
	"IQ4_NL": {map[int]byte{1: 0x3c, 2: 0xf8, 17: 0x70}, []span{{0, 1, 1}, {1, 16, -127}, {16, 17, 113}, {17, 31, -127}, {31, 32, -10}}},
	"MXFP4":  {map[int]byte{0: 128, 1: 0x1f, 16: 0x80}, []span{{0, 1, -12}, {1, 16, 0}, {16, 17, 1}, {17, 31, 0}, {31, 32, 0}}},
	// groups 0 and 15 have scales 1 and 3, minima 2 and 1
	"Q2_K": {map[int]byte{0: 0x21, 15: 0x13, 16: 0x03, 79: 0xc0, 81: 0x3c, 83: 0x38},
		[]span{{0, 1, 2}, {1, 16, -1}, {16, 240, 0}, {240, 255, -0.5}, {255, 256, 8.5}}},
	// groups 4 and 15 have scales 35 and 37
	"Q3_K": {map[int]byte{0: 0x01, 32: 0x01, 95: 0xc0, 100: 0x03, 103: 0x50, 104: 0x08, 107: 0x80, 109: 0x3c},
		[]span{{0, 1, -32}, {1, 64, 128}, {64, 80, -12}, {80, 240, 128}, {240, 255, -20}, {255, 256, -5}}},
	// groups 0 and 7 have scales 2 and 17, minima 3 and 34
	"Q4_K": {map[int]byte{1: 0x3c, 3: 0x3c, 4: 2, 7: 0x40, 8: 3, 11: 0x80, 15: 0x21, 16: 0x3f, 143: 0xf0},
		[]span{{0, 1, 27}, {1, 32, -3}, {32, 224, 0}, {224, 255, -34}, {255, 256, 221}}},
	"Q5_K": {map[int]byte{1: 0x3c, 3: 0x3c, 4: 2, 7: 0x40, 8: 3, 11: 0x80, 15: 0x21, 16: 0x01, 47: 0x80, 48: 0x3f, 175: 0xf0},
		[]span{{0, 1, 59}, {1, 32, -3}, {32, 224, 0}, {224, 255, -34}, {255, 256, 493}}},
	// groups 0 and 15 have scales 1 and -1
	"Q6_K": {map[int]byte{0: 0x0f, 127: 0x20, 128: 0x03, 191: 0x40, 192: 1, 207: 0xff, 209: 0x3c},
		[]span{{0, 1, 31}, {1, 16, -32}, {16, 240, minusZero}, {240, 255, 32}, {255, 256, 14}}},
	// groups 0 and 7 have scales 33 and 34
	"IQ4_XS": {map[int]byte{1: 0x3c, 2: 0x02, 3: 0x80, 4: 0x01, 7: 0x20, 8: 0x9f, 135: 0xa0},
		[]span{{0, 1, 113}, {1, 16, -127}, {16, 17, 13}, {17, 32, -127}, {32, 224, 4064}, {224, 255, -254}, {255, 256, 50}}},
}

func TestBlocksByHand(t *testing.T) {
	for _, b := range Blocks() {
		c, ok := handMade[b.Name]
		if !ok {
			t.Errorf("no block of %s", b)
			continue
		}
		src, dst := make([]byte, b.Size), make([]float32, b.Len)
		for at, v := range c.set {
			src[at] = v
		}
		b.Unpack(dst, src)
		next := 0
		for _, s := range c.want {
			if s.from != next {
				t.Fatalf("%s: nothing said of number %d", b, next)
			}
			for next = s.from; next < s.to; next++ {
				if math.Float32bits(dst[next]) != math.Float32bits(s.value) {
					t.Errorf("%s: number %d is %v, want %v", b, next, dst[next], s.value)
				}
			}
		}
		if next != b.Len {
			t.Errorf("%s: %d of %d numbers looked at", b, next, b.Len)
		}
	}
	if len(handMade) != len(Blocks()) {
		t.Errorf("%d blocks for %d formats", len(handMade), len(Blocks()))
	}
}

// The powers of two of MXFP4, from the least, which is subnormal, to what is no number.
func TestE8M0(t *testing.T) {
	for e := range 255 {
		if got, want := float64(e8m0(byte(e))), math.Ldexp(1, e-127); got != want {
			t.Errorf("2^(%d-127): got %v, want %v", e, got, want)
		}
	}
	var dst [32]float32
	BlockNamed("MXFP4").Unpack(dst[:], append([]byte{255}, make([]byte, 16)...))
	for i, v := range dst {
		if v == v {
			t.Errorf("number %d of a block whose scale is none is %v", i, v)
		}
	}
}

// Sizes are the format's; a number takes these bits.
func TestBlockSizes(t *testing.T) {
	bits := map[string]float64{
		"F32": 32, "BF16": 16, "F16": 16, "Q8_0": 8.5, "Q6_K": 6.5625, "Q5_1": 6, "Q5_0": 5.5, "Q5_K": 5.5, "Q4_1": 5, "Q4_0": 4.5,
		"Q4_K": 4.5, "IQ4_NL": 4.5, "IQ4_XS": 4.25, "MXFP4": 4.25, "Q3_K": 3.4375, "Q2_K": 2.625,
	}
	for _, b := range Blocks() {
		if got := float64(b.Bytes(3, 512)) * 8 / (3 * 512); got != bits[b.Name] {
			t.Errorf("%s takes %v bits, want %v", b, got, bits[b.Name])
		}
		if BlockNamed(b.Name) != b {
			t.Errorf("%s is not under its name", b)
		}
		for cols, ok := range map[int]bool{b.Len: true, 7 * b.Len: true, 0: false, -b.Len: false, b.Len + 1: b.Len == 1, 31: b.Len == 1} {
			if err := b.Validate(cols); (err == nil) != ok {
				t.Errorf("%s: rows of %d: %v", b, cols, err)
			}
		}
	}
	if BlockNamed("IQ2_XS") != nil || BlockNamed("") != nil {
		t.Error("a format without a rule has a name")
	}
}

// Several blocks are what each of them is, and another number of bytes is a fault of the caller.
func TestUnpackManyBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, b := range Blocks() {
		src := make([]byte, 5*b.Size)
		for i := range src {
			src[i] = byte(r.Uint32())
		}
		all, one := make([]float32, 5*b.Len), make([]float32, b.Len)
		b.Unpack(all, src)
		for k := range 5 {
			b.Unpack(one, src[k*b.Size:][:b.Size])
			for i, v := range one {
				if math.Float32bits(v) != math.Float32bits(all[k*b.Len+i]) {
					t.Fatalf("%s: number %d of block %d is %v alone and %v with others", b, i, k, v, all[k*b.Len+i])
				}
			}
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: a byte too few is taken", b)
				}
			}()
			b.Unpack(all, src[1:])
		}()
	}
}
