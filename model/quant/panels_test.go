package quant_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// parts is a matrix's arrays.
type parts [quant.NumParts][]byte

// randomParts returns a [rows, cols] matrix of random bytes in format f. Where scales and biases
// are bf16 they are finite.
func randomParts(rng *rand.Rand, f quant.Format, rows, cols int) (p parts) {
	for _, a := range f.Arrays(rows, cols) {
		p[a.Part] = make([]byte, a.Bytes)
		for i := range p[a.Part] {
			p[a.Part][i] = byte(rng.Uint32())
		}
		for i := 0; a.DType == "BF16" && a.Part != quant.Weight && i < a.Bytes; i += 2 {
			binary.LittleEndian.PutUint16(p[a.Part][i:], quant.F32ToBF16(float32(rng.NormFloat64())))
		}
	}
	return p
}

// arranged returns what arrange, ToPanels or ToRows, makes of all parts.
func (p parts) arranged(arrange func(p quant.Part, dst, src []byte, rows, cols int), rows, cols int) (out parts) {
	for i, src := range p {
		if src != nil {
			out[i] = make([]byte, len(src))
			arrange(quant.Part(i), out[i], src, rows, cols)
		}
	}
	return out
}

func (p parts) unpack(f quant.Format, dst []float32, row int) {
	f.Unpack(dst, len(dst), p[quant.Weight], p[quant.Scales], p[quant.Biases], row)
}

// Every code lies where the layout says, and reading a row gives the same numbers in both layouts.
func TestPanels(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const rows, cols = 48, 256
	for _, f := range formats {
		src := randomParts(rng, f, rows, cols)
		dst := src.arranged(f.ToPanels, rows, cols)
		perChunk := 32 / f.Bits()
		for r := range rows {
			for c := range cols {
				// where 16 rows' next inputs begin
				chunk := (r/16*cols + c/perChunk*perChunk) * 16 * f.Bits() / 8
				b := dst[quant.Weight][chunk+r%16*4+c%4]
				got := int(b) >> (c % perChunk / 4 * f.Bits()) & (1<<f.Bits() - 1)
				if want := code(src[quant.Weight][f.WeightBytes(r, cols):], f.Bits(), c); got != want {
					t.Fatalf("%v row %d input %d: got code %d, want %d", f, r, c, got, want)
				}
			}
		}
		panels := f
		panels.Layout = quant.Panels
		got, want := make([]float32, cols), make([]float32, cols)
		for r := range rows {
			src.unpack(f, want, r)
			dst.unpack(panels, got, r)
			for c := range got {
				if math.Float32bits(got[c]) != math.Float32bits(want[c]) {
					t.Fatalf("%v row %d input %d: got %v, want %v", panels, r, c, got[c], want[c])
				}
			}
		}
	}
}

func TestPanelsHold(t *testing.T) {
	f, numbers := quant.Affine(4, 64).In(quant.Panels, quant.PanelRows), quant.BF16
	numbers.Layout = quant.Panels
	if f.HoldsRows(24) || !f.HoldsRows(32) || numbers.HoldsRows(16) || !quant.BF16.HoldsRows(3) {
		t.Error("panels hold multiples of 16 rows of codes, rows any number of anything")
	}
	if got := f.String(); got != "q4g64p" {
		t.Errorf("name %q", got)
	}
}

// The worked example of the format: every 16th word belongs to a row, with its codes interleaved.
func TestPanelsExample(t *testing.T) {
	for bits, want := range map[int]uint32{8: 0x76543210, 4: 0x73625140, 2: 0x50dd5088} {
		f := quant.Affine(bits, 32)
		src, dst := make([]byte, f.WeightBytes(16, 32)), make([]byte, f.WeightBytes(16, 32))
		binary.LittleEndian.PutUint32(src[f.WeightBytes(5, 32)+4:], 0x76543210) // word 1 of row 5
		f.ToPanels(quant.Weight, dst, src, 16, 32)
		if got := binary.LittleEndian.Uint32(dst[(16+5)*4:]); got != want {
			t.Errorf("%d bits: got %#x, want %#x", bits, got, want)
		}
	}
}

// A part of a matrix equals its place in the whole, and the last tile of a row may be shorter than
// a cache line.
func TestPanelsInParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	const rows, cols = 32, 3 * 128
	for _, f := range formats {
		src := randomParts(rng, f, rows, cols)
		whole := src.arranged(f.ToPanels, rows, cols)
		for i := range src {
			p, half := quant.Part(i), len(src[i])/2
			second := make([]byte, half)
			if f.ToPanels(p, second, src[p][half:], 16, cols); !bytes.Equal(second, whole[p][half:]) {
				t.Errorf("%v: the second panel of %s alone differs from that of the whole", f, p)
			}
			groups := cols / f.Group()
			size := len(src[i]) / rows / groups
			for r := 0; p != quant.Weight && r < rows; r++ {
				for g := range groups {
					at, from := size*((r/16*groups+g)*16+r%16), size*(r*groups+g)
					if !bytes.Equal(whole[p][at:at+size], src[p][from:from+size]) {
						t.Fatalf("%v row %d group %d: %s is not where it belongs", f, r, g, p)
					}
				}
			}
		}
	}
}

func TestIn(t *testing.T) {
	q := quant.Affine(4, 64)
	for _, c := range []struct {
		f    quant.Format
		l    quant.Layout
		rows int
		want quant.Layout
	}{
		{q, quant.Panels, 32, quant.Panels}, {q, quant.Panels, 24, quant.Rows}, {q, quant.Panels, 1, quant.Rows}, {q, quant.Rows, 32, quant.Rows},
		{q.In(quant.Panels, 32), quant.Rows, 32, quant.Rows}, {quant.BF16, quant.Panels, 32, quant.Rows},
	} {
		if got := c.f.In(c.l, c.rows); got.Layout != c.want || got.Bits() != c.f.Bits() || got.Group() != c.f.Group() || got.Coding() != c.f.Coding() {
			t.Errorf("%v in %v of %d rows: got %v, want %v", c.f, c.l, c.rows, got, c.want)
		}
	}
}

func TestLayoutNames(t *testing.T) {
	for name, want := range map[string]quant.Layout{"rows": quant.Rows, "panels": quant.Panels} {
		var got quant.Layout
		if err := got.UnmarshalText([]byte(name)); err != nil || got != want || got.String() != name {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
		if text, err := want.MarshalText(); err != nil || string(text) != name {
			t.Errorf("%v: got %q, %v", want, text, err)
		}
	}
	var l quant.Layout
	if err := l.UnmarshalText([]byte("columns")); err == nil || !strings.Contains(err.Error(), `"columns"`) || !strings.Contains(err.Error(), "rows or panels") {
		t.Errorf("an unknown name: got %v", err)
	}
	if _, err := quant.Layout(9).MarshalText(); err == nil {
		t.Error("an unknown layout has a name")
	}
}

func BenchmarkToPanels(b *testing.B) {
	const rows, cols = 768, 2048
	for _, f := range []quant.Format{quant.Affine(2, 64), quant.Affine(4, 64), quant.Affine(8, 64)} {
		b.Run("format="+f.String(), func(b *testing.B) {
			src := randomParts(rand.New(rand.NewPCG(1, 2)), f, rows, cols)
			dst := src.arranged(f.ToPanels, rows, cols)
			b.SetBytes(int64(f.Bytes(rows, cols)))
			for b.Loop() {
				for p := range src {
					f.ToPanels(quant.Part(p), dst[p], src[p], rows, cols)
				}
			}
		})
	}
}

// ToRows undoes ToPanels, also for rows with an odd number of words, and only for whole panels.
func TestToRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	const rows = 48
	for _, f := range formats {
		for _, cols := range []int{f.Group(), 3 * f.Group(), 2048} {
			src := randomParts(rng, f, rows, cols)
			panels := src.arranged(f.ToPanels, rows, cols)
			back := panels.arranged(f.ToRows, rows, cols)
			for p := range src {
				if !bytes.Equal(back[p], src[p]) {
					t.Errorf("%v of %d inputs: %s is not what it was", f, cols, quant.Part(p))
				}
				third := len(src[p]) / 3
				part := make([]byte, third)
				f.ToRows(quant.Part(p), part, panels[p][third:2*third], rows/3, cols)
				if !bytes.Equal(part, src[p][third:2*third]) {
					t.Errorf("%v of %d inputs: the second panel of %s alone is not what it was", f, cols, quant.Part(p))
				}
			}
		}
	}
}
