package gputest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// weights is a matrix on the device and what it means.
type weights struct {
	gpu.Matrix
	values     []float64 // [rows, cols]; filled by known
	magnitudes []float64 // |q·scale| + |bias|, or |w|
	fill       func()    // fills both; nil once it has
	unchecked  bool      // nobody asks for products
}

// formats are all that kernels serve, in rows, but for blocks, see blockFormats. Of codings whose
// kernels differ from others' in how they read codes and scales alone there is one size of groups.
func formats() []quant.Format {
	return slices.DeleteFunc(quant.Formats(), func(f quant.Format) bool {
		once := f.Coding().ScaleBytes() == 4
		return f.Block() != nil || once && f.Group() != map[bool]int{true: 64, false: 128}[f.Rounds()]
	})
}

// codeFormats are those of codes in groups.
func codeFormats() []quant.Format {
	return slices.DeleteFunc(formats(), func(f quant.Format) bool { return !f.Codes() })
}

// panelFormats are those in layout Panels, whose rows are multiples of 16.
func panelFormats() []quant.Format {
	all := codeFormats()
	for i := range all {
		all[i].Layout = quant.Panels
	}
	return all
}

// makers make random matrices of a coding, by its name: what is said of one here is its definition.
// Codes that stand for themselves are not here, see affine.
var makers = map[string]func(s *setup, name string, w *weights){
	"f32": (*setup).plainF32, "bf16": (*setup).plainBF16,
	"mxfp4": (*setup).mxfp4, "fp8": (*setup).fp8, "nvfp4": (*setup).nvfp4,
}

// matrix makes a random matrix.
func (s *setup) matrix(name string, rows, cols int, f quant.Format) *weights {
	s.t.Helper()
	w := &weights{Matrix: gpu.Matrix{Rows: rows, Cols: cols, Format: f}, unchecked: s.unchecked}
	switch c := f.Coding(); {
	case f.Block() != nil:
		s.blocks(name, w)
	case f.Codes() && c.Itself():
		s.affine(name, w)
	case makers[c.String()] == nil:
		s.t.Fatalf("gputest: nothing says what %s is", f)
	default:
		makers[c.String()](s, name, w)
	}
	return w
}

func (s *setup) plainF32(name string, w *weights) {
	v := s.normal(w.Rows * w.Cols)
	w.fill = func() {
		for i := range v {
			w.set(i, float64(v[i]), 0)
		}
	}
	w.Weight = s.input(name, v).view()
}

func (s *setup) plainBF16(name string, w *weights) {
	data := s.bf16s(s.normal(w.Rows * w.Cols))
	w.fill = func() {
		for i := range w.values {
			w.set(i, bf16At(data, i), 0)
		}
	}
	w.Weight = s.place(name, data, 2).view()
}

// known returns what the matrix means: values and magnitudes. Most of a case's time would go into
// them, and many a matrix is never multiplied by.
func (w *weights) known() (values, magnitudes []float64) {
	if w.fill != nil {
		w.values, w.magnitudes = make([]float64, w.Rows*w.Cols), make([]float64, w.Rows*w.Cols)
		w.fill()
		w.fill = nil
	}
	return w.values, w.magnitudes
}

func (w *weights) set(i int, product, bias float64) {
	w.values[i] = product + bias
	w.magnitudes[i] = math.Abs(product) + math.Abs(bias)
}

// affine makes random codes, and scales of both signs and 0.
func (s *setup) affine(name string, w *weights) {
	s.t.Helper()
	f, n := w.Format, w.Rows*w.Cols
	codes := make([]byte, f.WeightBytes(w.Rows, w.Cols))
	for i := range codes {
		codes[i] = byte(s.rng.Uint32())
	}
	groups := n / f.Group()
	levels := float32(int(1)<<f.Bits() - 1)
	scales, biases := make([]float32, groups), make([]float32, groups)
	for g := range groups {
		scales[g] = (0.5 + s.rng.Float32()) * 2 / levels
		if s.rng.IntN(3) == 0 {
			scales[g] = -scales[g]
		}
		biases[g] = -scales[g]*levels/2 + float32(s.rng.NormFloat64())/8
		if s.rng.IntN(16) == 0 {
			scales[g] = 0
		}
	}
	sb, bb := s.bf16s(scales), s.bf16s(biases)
	size, at := 2, bf16At
	if f.Coding().ScaleBytes() == 4 {
		sb, bb, size, at = f32Bytes(scales), f32Bytes(biases), 4, f32At
	}
	w.fill = func() {
		w.dequantise(codes, func(g int) (scale, bias float64) { return at(sb, g), at(bb, g) })
	}
	w.Weight = s.place(name, w.arranged(quant.Weight, codes), 4).view()
	w.Scales = s.place(name+" scales", w.arranged(quant.Scales, sb), size).view()
	w.Biases = s.place(name+" biases", w.arranged(quant.Biases, bb), size).view()
}

// mxfp4Values are what the codes of MXFP4 stand for: a sign, 2 bits of exponent, 1 of fraction.
var mxfp4Values = [16]float64{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}

// mxfp4 makes random codes, and scales of which one in 16 is 2^-127, the least there is.
func (s *setup) mxfp4(name string, w *weights) {
	s.t.Helper()
	codes, scales := make([]byte, w.Rows*w.Cols/2), make([]byte, w.Rows*w.Cols/32)
	for i := range codes {
		codes[i] = byte(s.rng.Uint32())
	}
	for i := range scales {
		if scales[i] = byte(122 + s.rng.IntN(4)); s.rng.IntN(16) == 0 {
			scales[i] = 0
		}
	}
	w.fill = func() {
		for i := range w.values {
			code := codes[i/2] >> (i % 2 * 4) & 15
			w.set(i, mxfp4Values[code]*math.Ldexp(1, int(scales[i/32])-127), 0)
		}
	}
	w.Weight = s.place(name, w.arranged(quant.Weight, codes), 4).view()
	w.Scales = s.place(name+" scales", w.arranged(quant.Scales, scales), 2).view()
}

// e4m3Value is what a float of 8 bits stands for: a sign, 4 bits of exponent, 3 of fraction.
func e4m3Value(code byte) float64 {
	exp, frac := int(code>>3&15), float64(code&7)/8
	v := math.Ldexp(1+frac, exp-7)
	if exp == 0 {
		v = math.Ldexp(frac, -6)
	}
	if code > 127 {
		return -v
	}
	return v
}

// fp8 makes random codes that are numbers, and scales that are no power of two.
func (s *setup) fp8(name string, w *weights) {
	s.t.Helper()
	codes, group := make([]byte, w.Rows*w.Cols), w.Format.Group()
	for i := range codes {
		if codes[i] = byte(s.rng.Uint32()); codes[i]&0x7f == 0x7f {
			codes[i]--
		}
		if codes[i]&0x40 != 0 && s.rng.IntN(4) != 0 { // fewer of the largest: a row has many sizes
			codes[i] &^= 0x40
		}
	}
	scales := make([]float32, len(codes)/group)
	for g := range scales {
		scales[g] = (0.5 + s.rng.Float32()) / 64
	}
	sb := f32Bytes(scales)
	w.fill = func() {
		for i := range w.values {
			w.set(i, e4m3Value(codes[i])*f32At(sb, i/group), 0)
		}
	}
	w.Weight = s.place(name, w.arranged(quant.Weight, codes), 4).view()
	w.Scales = s.place(name+" scales", w.arranged(quant.Scales, sb), 4).view()
}

// nvfp4 makes random codes, scales of which one in 16 is the least there is, and factors of rows.
func (s *setup) nvfp4(name string, w *weights) {
	s.t.Helper()
	codes, scales, factors := make([]byte, w.Rows*w.Cols/2), make([]byte, w.Rows*w.Cols/16), make([]float32, w.Rows)
	for i := range codes {
		codes[i] = byte(s.rng.Uint32())
	}
	for i := range scales {
		if scales[i] = byte(0x20 + s.rng.IntN(0x20)); s.rng.IntN(16) == 0 {
			scales[i] = 1
		}
	}
	for i := range factors {
		factors[i] = (0.5 + s.rng.Float32()) / 2
	}
	w.fill = func() {
		for i := range w.values {
			code := codes[i/2] >> (i % 2 * 4) & 15
			w.set(i, mxfp4Values[code]*e4m3Value(scales[i/16])*float64(factors[i/w.Cols]), 0)
		}
	}
	w.Weight = s.place(name, w.arranged(quant.Weight, codes), 4).view()
	w.Scales = s.place(name+" scales", w.arranged(quant.Scales, scales), 2).view()
	w.Biases = s.place(name+" factors", w.arranged(quant.Biases, f32Bytes(factors)), 4).view()
}

// arranged returns a part of the matrix in its layout; rows has it row after row.
func (w *weights) arranged(p quant.Part, rows []byte) []byte {
	if w.Format.Layout == quant.Rows {
		return rows
	}
	panels := make([]byte, len(rows))
	w.Format.ToPanels(p, panels, rows, w.Rows, w.Cols)
	return panels
}

// dequantise sets every element from codes in rows: bits wide, least significant first in
// little-endian 32-bit words.
func (w *weights) dequantise(codes []byte, numbers func(group int) (scale, bias float64)) {
	perWord, mask := 32/w.Format.Bits(), uint32(1)<<w.Format.Bits()-1
	for i := 0; i < len(w.values); i += perWord {
		scale, bias := numbers(i / w.Format.Group())
		word := binary.LittleEndian.Uint32(codes[i/perWord*4:])
		for k := range perWord {
			w.set(i+k, float64(word&mask)*scale, bias)
			word >>= w.Format.Bits()
		}
	}
}

// bf16s cuts float32 to their upper halves.
func (s *setup) bf16s(f []float32) []byte {
	b := make([]byte, 2*len(f))
	for i, v := range f {
		binary.LittleEndian.PutUint16(b[2*i:], uint16(math.Float32bits(v)>>16))
	}
	return b
}

func f32Bytes(f []float32) (b []byte) {
	for _, v := range f {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func f32At(b []byte, i int) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
}

func bf16At(b []byte, i int) float64 {
	return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16))
}

// times returns W·x and the error it may have when x is off by at most off (nil: exact).
func (w *weights) times(x, off []float64) (y, limit []float64) {
	y, limit = make([]float64, w.Rows), make([]float64, w.Rows)
	if w.unchecked {
		return y, limit
	}
	values, magnitudes := w.known()
	t := sumTolerance(w.Cols)
	for o := range y {
		row, sizes := values[o*w.Cols:][:len(x)], magnitudes[o*w.Cols:][:len(x)]
		sum, most := 0.0, 0.0
		for i, v := range x {
			sum += row[i] * v
			most += t * sizes[i] * math.Abs(v)
			if off != nil {
				most += sizes[i] * off[i]
			}
		}
		y[o], limit[o] = sum, most+tiny
	}
	return y, limit
}

func shapeName(f quant.Format, out, in, rows int) string {
	return fmt.Sprintf("format=%v/out=%d/in=%d/rows=%d", f, out, in, rows)
}

func float64s(f []float32) []float64 {
	d := make([]float64, len(f))
	for i, v := range f {
		d[i] = float64(v)
	}
	return d
}
