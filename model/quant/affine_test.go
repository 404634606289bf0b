package quant_test

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// formats are those of codes.
var formats = slices.DeleteFunc(quant.Formats(), func(f quant.Format) bool { return !f.Codes() })

// affineFormats are those that Quantize makes.
var affineFormats = slices.DeleteFunc(quant.Formats(), func(f quant.Format) bool { return !f.Affine() })

// code returns the code of element i, by the definition: bits of little-endian 32-bit words, least
// significant first.
func code(weight []byte, bits, i int) int {
	perWord := 32 / bits
	word := binary.LittleEndian.Uint32(weight[i/perWord*4:])
	return int(word >> (i % perWord * bits) & (1<<bits - 1))
}

func bf16At(b []byte, i int) float32 { return quant.BF16ToF32(binary.LittleEndian.Uint16(b[2*i:])) }

// The word 0x76543210 with scale 0.5 and bias -1 is the worked example of the format.
func TestUnpackExample(t *testing.T) {
	f := quant.Affine(4, 32)
	weight := make([]byte, 16)
	binary.LittleEndian.PutUint32(weight, 0x76543210)
	scales := binary.LittleEndian.AppendUint16(nil, quant.F32ToBF16(0.5))
	biases := binary.LittleEndian.AppendUint16(nil, quant.F32ToBF16(-1))
	got := make([]float32, 32)
	f.Unpack(got, 32, weight, scales, biases, 0)
	for i, want := range []float32{-1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, -1} {
		if got[i] != want {
			t.Errorf("element %d: got %v, want %v", i, got[i], want)
		}
	}
}

// MXFP4 by hand: byte j of a block holds elements 2j and 2j+1, 2 is 1 and 10 is -1, scale 126
// halves; scale 0 is 2^-127, 254 is 2^127, and 255 is no number.
func TestUnpackMXFP4(t *testing.T) {
	f := quant.MXFP4
	weight, scales := make([]byte, 5*16), []byte{126, 127, 0, 254, 255}
	weight[0] = 0x2a
	for i := range 8 { // all codes in order
		weight[16+i] = byte(2*i) | byte(2*i+1)<<4
	}
	weight[32], weight[48], weight[64] = 0x91, 0xe6, 0x07
	got := make([]float32, 5*32)
	f.Unpack(got, 5*32, weight, scales, nil, 0)
	if got[0] != -0.5 || got[1] != 0.5 || got[2] != 0 {
		t.Errorf("0x2a of scale 126: got %v", got[:3])
	}
	for i, want := range []float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6} {
		if math.Float32bits(got[32+i]) != math.Float32bits(want) {
			t.Errorf("code %d: got %v, want %v", i, got[32+i], want)
		}
	}
	if least := math.Float32frombits(1 << 21); got[64] != least || got[65] != -least {
		t.Errorf("0.5 of scale 0: got %v, %v, want ±%v", got[64], got[65], least)
	}
	if !math.IsInf(float64(got[96]), 1) || !math.IsInf(float64(got[97]), -1) || got[98] != 0 {
		t.Errorf("4, -4 and 0 of scale 254: got %v, want infinities and 0", got[96:99])
	}
	for i := range 3 {
		if got[128+i] == got[128+i] {
			t.Errorf("scale 255: element %d is %v, want no number", i, got[128+i])
		}
	}
	if i := f.NoNumber(scales); i != 4 {
		t.Errorf("NoNumber: got %d, want 4", i)
	}
	if i := quant.Affine(4, 64).NoNumber(scales); i != -1 {
		t.Errorf("NoNumber of bf16: got %d, want -1", i)
	}
}

// Whole steps mean the values, where values are whole steps.
func TestSteps(t *testing.T) {
	for _, c := range quant.Codings() {
		if !c.Stepped() {
			continue
		}
		step, least := c.Steps()
		for code := range 1 << c.Bits() {
			whole := c.Whole(code)
			if whole < 0 || whole > 255 || step*float32(whole)+least != c.Value(code) {
				t.Errorf("%v: code %d is %d steps of %v above %v, want %v", c, code, whole, step, least, c.Value(code))
			}
		}
	}
}

// Every format, every row, against the definition in float64.
func TestUnpack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const rows, cols = 3, 256
	for _, f := range append(affineFormats, quant.F32, quant.BF16) {
		p := randomParts(rng, f, rows, cols)
		weight, scales, biases := p[quant.Weight], p[quant.Scales], p[quant.Biases]
		got := make([]float32, cols)
		for row := range rows {
			f.Unpack(got, cols, weight, scales, biases, row)
			for col := range cols {
				i := row*cols + col
				var want float32
				switch f {
				case quant.F32:
					want = math.Float32frombits(binary.LittleEndian.Uint32(weight[4*i:]))
				case quant.BF16:
					want = bf16At(weight, i)
				default:
					g := i / f.Group()
					want = float32(float64(code(weight, f.Bits(), i))*float64(bf16At(scales, g)) + float64(bf16At(biases, g)))
				}
				if math.Float32bits(got[col]) != math.Float32bits(want) {
					t.Fatalf("%v row %d column %d: got %v, want %v", f, row, col, got[col], want)
				}
			}
		}
	}
}

// Every number gets the code with the nearest value. It is off by at most half a step within the
// range of the codes, and by one step at the far end, which moves by up to a step so that zero has
// a code. Rounding bias and scale to bf16 adds 2^-8 of the bias and of the range.
func TestQuantizeError(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, f := range affineFormats {
		for _, shift := range []float64{0, -3, 3, 0.5} {
			src := make([]float32, 1024)
			for i := range src {
				src[i] = float32(rng.NormFloat64() + shift)
			}
			weight, scales, biases := quantize(t, f, src)
			got := make([]float32, len(src))
			f.Unpack(got, len(src), weight, scales, biases, 0)
			for i, x := range src {
				group := src[i/f.Group()*f.Group():][:f.Group()]
				step := float64(slices.Max(group)-slices.Min(group)) / float64(int(1)<<f.Bits()-1)
				scale, bias := float64(bf16At(scales, i/f.Group())), float64(bf16At(biases, i/f.Group()))
				nearest := math.Inf(1)
				for q := range 1 << f.Bits() {
					nearest = min(nearest, math.Abs(float64(q)*scale+bias-float64(x)))
				}
				d := math.Abs(float64(got[i]) - float64(x))
				if d > nearest+1e-6 || d > step*(1+float64(int(1)<<f.Bits())/256)+math.Abs(bias)/256 {
					t.Fatalf("%v shift %v element %d: got %v, want %v, off by %g; the nearest code is off by %g, a step is %g", f, shift, i, got[i], x, d, nearest, step)
				}
			}
		}
	}
}

func quantize(t *testing.T, f quant.Format, src []float32) (weight, scales, biases []byte) {
	t.Helper()
	weight = make([]byte, f.WeightBytes(1, len(src)))
	scales, biases = make([]byte, f.ScaleBytes(1, len(src))), make([]byte, f.ScaleBytes(1, len(src)))
	if err := f.Quantize(weight, scales, biases, src); err != nil {
		t.Fatalf("Quantize to %v: %v", f, err)
	}
	return weight, scales, biases
}

// The end of larger magnitude is exact, and its side sets the sign of the scale. Zero has its own
// code.
func TestQuantizeEnds(t *testing.T) {
	f := quant.Affine(4, 32)
	for _, c := range []struct {
		name       string
		lo, hi     float32
		bias       float32
		scaleAbove bool
	}{
		{"greatest is larger", -1, 2, 2, false},
		{"least is larger", -2, 1, -2, true},
		{"equal magnitude", -1, 1, 1, false},
		{"all positive", 1, 2, 2, false},
		{"all negative", -2, -1, -2, true},
	} {
		src := make([]float32, 32) // zeros within, where the range has zero
		for i := range src {
			src[i] = min(max(0, c.lo), c.hi)
		}
		src[3], src[17] = c.lo, c.hi
		weight, scales, biases := quantize(t, f, src)
		if bias, scale := bf16At(biases, 0), bf16At(scales, 0); bias != c.bias || (scale > 0) != c.scaleAbove {
			t.Errorf("%s: got bias %v scale %v, want bias %v, scale above 0: %v", c.name, bias, scale, c.bias, c.scaleAbove)
		}
		got := make([]float32, 32)
		f.Unpack(got, 32, weight, scales, biases, 0)
		if i := map[bool]int{true: 3, false: 17}[c.scaleAbove]; got[i] != c.bias {
			t.Errorf("%s: the larger end: got %v, want %v", c.name, got[i], c.bias)
		}
		if c.lo < 0 && c.hi > 0 {
			// The scale is rounded to bf16, so zero is exact to that.
			if tol := math.Abs(float64(c.bias)) / 256; math.Abs(float64(got[0])) > tol {
				t.Errorf("%s: zero became %v, more than %g", c.name, got[0], tol)
			}
		}
	}
}

func TestQuantizeConstantAndTiny(t *testing.T) {
	f := quant.Affine(4, 32)
	for _, v := range []float32{0, 1, -1, 0.25, 1e-9, -1e-9, 1e-40, 3e38, -3e38} {
		src := make([]float32, 32)
		for i := range src {
			src[i] = v
		}
		weight, scales, biases := quantize(t, f, src)
		got := make([]float32, 32)
		f.Unpack(got, 32, weight, scales, biases, 0)
		// bf16 has 8 significant bits; below the least step everything becomes 0.
		if d := math.Abs(float64(got[5]) - float64(v)); d > math.Abs(float64(v))/256+1e-7 {
			t.Errorf("constant %v: got %v", v, got[5])
		}
	}
}

func TestQuantizeRefuses(t *testing.T) {
	f := quant.Affine(4, 32)
	for _, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32} {
		src := make([]float32, 96)
		src[70] = v
		err := f.Quantize(make([]byte, 48), make([]byte, 6), make([]byte, 6), src)
		var bad *quant.ValueError
		if !errors.As(err, &bad) || bad.Index < 64 || bad.Index >= 96 {
			t.Errorf("Quantize with %v at 70: got %v, want a *ValueError in the third group", v, err)
		}
	}
}

// The same numbers quantised by another implementation of MLX's method give the same codes, scales
// and biases to the bit.
func TestQuantizeFixture(t *testing.T) {
	file, err := safetensors.Open(fixtures.Path(t, "qwen3_moe/quantise.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tensor := func(name string) safetensors.Tensor {
		x, ok := file.Tensor(name)
		if !ok {
			t.Fatalf("no tensor %q", name)
		}
		return x
	}
	codes, groups := 0, 0
	for _, c := range []struct {
		name string
		bits int
	}{
		{"model.embed_tokens", 4}, {"model.layers.0.self_attn.q_proj", 4}, {"model.layers.0.self_attn.o_proj", 4},
		{"model.layers.0.mlp.gate", 8}, {"model.layers.0.mlp.experts.0.gate_proj", 4}, {"model.layers.0.mlp.experts.0.down_proj", 4},
	} {
		x := tensor("bf16." + c.name + ".weight")
		src := make([]float32, x.Elements())
		if err := x.Floats(src, 0); err != nil {
			t.Fatal(err)
		}
		f := quant.Affine(c.bits, 64)
		weight, scales, biases := quantize(t, f, src)
		wantW, wantS, wantB := tensor("q4."+c.name+".weight").Data, tensor("q4."+c.name+".scales").Data, tensor("q4."+c.name+".biases").Data
		if len(weight) != len(wantW) || len(scales) != len(wantS) {
			t.Fatalf("%s: %d bytes of codes and %d of scales, want %d and %d", c.name, len(weight), len(scales), len(wantW), len(wantS))
		}
		for g := range len(scales) / 2 {
			groups++
			if bf16At(scales, g) != bf16At(wantS, g) || bf16At(biases, g) != bf16At(wantB, g) {
				t.Errorf("%s group %d: got scale %v bias %v, want %v %v", c.name, g, bf16At(scales, g), bf16At(biases, g), bf16At(wantS, g), bf16At(wantB, g))
			}
		}
		for i := range src {
			codes++
			if got, want := code(weight, c.bits, i), code(wantW, c.bits, i); got != want {
				t.Errorf("%s element %d = %v: got code %d, want %d", c.name, i, src[i], got, want)
			}
		}
	}
	t.Logf("%d codes in %d groups compared", codes, groups)
}

// Formats follow from their arrays, whatever other formats there are.
func TestFromArrays(t *testing.T) {
	const rows, cols = 3, 256
	for _, f := range quant.Formats() {
		arrays := f.Arrays(rows, cols)
		find := func(p quant.Part) (string, []int, bool) {
			if int(p) >= len(arrays) {
				return "", nil, false
			}
			return arrays[p].DType, arrays[p].Shape, true
		}
		if got, err := quant.FromArrays(rows, cols, find); err != nil || got != f {
			t.Errorf("FromArrays of %v: got %v, %v", f, got, err)
		}
		sum := 0
		for _, a := range arrays {
			sum += a.Bytes
		}
		if sum != f.Bytes(rows, cols) {
			t.Errorf("%v: arrays of %d bytes, want %d", f, sum, f.Bytes(rows, cols))
		}
	}
	type stored struct {
		dtype string
		shape []int
	}
	words := func(n int) stored { return stored{"U32", []int{rows, n}} }
	groups := func(n int) stored { return stored{"BF16", []int{rows, n}} }
	for _, c := range []struct {
		name string
		cols int
		got  []stored
	}{
		{"nothing", cols, nil}, {"no scales", cols, []stored{words(32)}}, {"no biases", cols, []stored{words(32), groups(4)}},
		{"3 bits", cols, []stored{words(24), groups(4), groups(4)}}, {"3 groups", cols, []stored{words(32), groups(3), groups(3)}},
		{"groups of 16", cols, []stored{words(32), groups(16), groups(16)}}, {"one group", cols, []stored{words(32), groups(1), groups(1)}},
		{"no groups", cols, []stored{words(32), groups(0), groups(0)}}, {"other biases", cols, []stored{words(32), groups(4), groups(2)}},
		{"no columns", 0, []stored{words(0), groups(0), groups(0)}}, {"negative", -256, []stored{words(32), groups(4), groups(4)}},
		{"one axis", cols, []stored{{"U32", []int{32}}, groups(4), groups(4)}}, {"scales of F16", cols, []stored{words(32), {"F16", []int{rows, 4}}, groups(4)}},
		{"numbers with scales", cols, []stored{{"BF16", []int{rows, cols}}, groups(4), groups(4)}}, {"F16 words", cols, []stored{{"F16", []int{rows, cols / 2}}}},
		{"half a block", 128, []stored{{"Q4_K", []int{rows, 128}}}}, {"a block of 32-bit words", cols, []stored{{"Q4_K", []int{rows, 36}}}},
	} {
		f, err := quant.FromArrays(rows, c.cols, func(p quant.Part) (string, []int, bool) {
			if int(p) >= len(c.got) {
				return "", nil, false
			}
			return c.got[p].dtype, c.got[p].shape, true
		})
		if err == nil {
			t.Errorf("%s: got %v, want an error", c.name, f)
		}
	}
}

// Formats that there are not are refused, with what there is.
func TestAffineFormat(t *testing.T) {
	for _, f := range affineFormats {
		if got, err := quant.AffineFormat(f.Bits(), f.Group()); err != nil || got != f {
			t.Errorf("%v: got %v, %v", f, got, err)
		}
	}
	for _, c := range []struct {
		bits, group int
		why         string
	}{{5, 64, "5 bits"}, {0, 64, "0 bits"}, {16, 64, "16 bits"}, {4, 48, "groups of 48"}, {4, 0, "groups of 0"}} {
		if _, err := quant.AffineFormat(c.bits, c.group); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%d bits in groups of %d: got %v, want %q", c.bits, c.group, err, c.why)
		}
	}
}

func BenchmarkQuantize(b *testing.B) {
	f := quant.Affine(4, 64)
	src := make([]float32, 1<<16)
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range src {
		src[i] = float32(rng.NormFloat64())
	}
	weight, scales, biases := make([]byte, len(src)/2), make([]byte, len(src)/32), make([]byte, len(src)/32)
	b.SetBytes(int64(4 * len(src)))
	for b.Loop() {
		if err := f.Quantize(weight, scales, biases, src); err != nil {
			b.Fatal(err)
		}
	}
}

// Two bits lose more of normally distributed numbers than four, but less than with the ends of each
// group's range as the ends of its four values. The comment of convert.Options.ExpertBits has the
// figures.
func TestQuantizeTwoBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	x := make([]float32, 64*2000)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for bits, want := range map[int][2]float64{2: {0.14, 0.17}, 4: {0.005, 0.012}} {
		f := quant.Affine(bits, 64)
		w, s, b := make([]byte, len(x)*bits/8), make([]byte, len(x)/32), make([]byte, len(x)/32)
		if err := f.Quantize(w, s, b, x); err != nil {
			t.Fatal(err)
		}
		got := make([]float32, len(x))
		f.Unpack(got, len(x), w, s, b, 0)
		sum, ranged := 0.0, 0.0
		for g := 0; g < len(x); g += 64 {
			lo, hi := slices.Min(x[g:g+64]), slices.Max(x[g:g+64])
			step := float64(hi-lo) / float64(int(1)<<bits-1)
			for i := g; i < g+64; i++ {
				sum += math.Pow(float64(got[i]-x[i]), 2)
				near := math.Round(float64(x[i]-lo)/step)*step + float64(lo)
				ranged += math.Pow(near-float64(x[i]), 2)
			}
		}
		n := float64(len(x))
		t.Logf("%d bits: mean square error %.4f, with the range's ends %.4f", bits, sum/n, ranged/n)
		if sum/n < want[0] || sum/n > want[1] || bits == 2 && ranged/n < 0.19 {
			t.Errorf("%d bits: mean square error %v, want %v; with the range's ends %v", bits, sum/n, want, ranged/n)
		}
	}
}
