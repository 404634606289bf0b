package gputest

import (
	"encoding/binary"
	"fmt"
	"math"

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

// formats are all that kernels serve.
func formats() []quant.Format {
	all := []quant.Format{{Kind: quant.F32}, {Kind: quant.BF16}}
	for _, bits := range []int{2, 4, 8} {
		for _, group := range []int{32, 64, 128} {
			all = append(all, quant.Format{Kind: quant.Affine, Bits: bits, Group: group})
		}
	}
	return all
}

// panelFormats are the affine ones in layout Panels, whose rows are multiples of 16.
func panelFormats() (all []quant.Format) {
	for _, f := range formats() {
		if f.Kind == quant.Affine {
			f.Layout = quant.Panels
			all = append(all, f)
		}
	}
	return all
}

// matrix makes a random matrix.
func (s *setup) matrix(name string, rows, cols int, f quant.Format) *weights {
	s.t.Helper()
	w := &weights{Matrix: gpu.Matrix{Rows: rows, Cols: cols, Format: f}, unchecked: s.unchecked}
	switch f.Kind {
	case quant.F32:
		v := s.normal(rows * cols)
		w.fill = func() {
			for i := range v {
				w.set(i, float64(v[i]), 0)
			}
		}
		w.Weight = s.input(name, v).view()
	case quant.BF16:
		data := s.bf16s(s.normal(rows * cols))
		w.fill = func() {
			for i := range w.values {
				w.set(i, bf16At(data, i), 0)
			}
		}
		w.Weight = s.place(name, data, 2).view()
	default:
		s.affine(name, w)
	}
	return w
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
	groups := n / f.Group
	levels := float32(int(1)<<f.Bits - 1)
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
	w.fill = func(codes, sb, bb []byte) func() { return func() { w.dequantise(codes, sb, bb) } }(codes, sb, bb)
	if f.Layout == quant.Panels {
		panels := quant.Codes{Weight: make([]byte, len(codes)), Scales: make([]byte, len(sb)), Biases: make([]byte, len(bb))}
		f.ToPanels(panels, quant.Codes{Weight: codes, Scales: sb, Biases: bb}, w.Rows, w.Cols)
		codes, sb, bb = panels.Weight, panels.Scales, panels.Biases
	}
	w.Weight = s.place(name, codes, 4).view()
	w.Scales = s.place(name+" scales", sb, 2).view()
	w.Biases = s.place(name+" biases", bb, 2).view()
}

// dequantise sets every element from codes in rows: bits wide, least significant first in
// little-endian 32-bit words.
func (w *weights) dequantise(codes, scales, biases []byte) {
	perWord, mask := 32/w.Format.Bits, uint32(1)<<w.Format.Bits-1
	for i := 0; i < len(w.values); i += perWord {
		scale, bias := bf16At(scales, i/w.Format.Group), bf16At(biases, i/w.Format.Group)
		word := binary.LittleEndian.Uint32(codes[i/perWord*4:])
		for k := range perWord {
			w.set(i+k, float64(word&mask)*scale, bias)
			word >>= w.Format.Bits
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
