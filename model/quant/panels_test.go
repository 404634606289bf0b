package quant_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// Every code lies where the layout says, and reading a row gives the same numbers in both layouts.
func TestPanels(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const rows, cols = 48, 256
	for _, f := range formats {
		src := quant.Codes{Weight: make([]byte, f.WeightBytes(rows, cols)), Scales: make([]byte, f.ScaleBytes(rows, cols)), Biases: make([]byte, f.ScaleBytes(rows, cols))}
		for i := range src.Weight {
			src.Weight[i] = byte(rng.Uint32())
		}
		for i := range len(src.Scales) / 2 {
			binary.LittleEndian.PutUint16(src.Scales[2*i:], quant.F32ToBF16(float32(rng.NormFloat64())))
			binary.LittleEndian.PutUint16(src.Biases[2*i:], quant.F32ToBF16(float32(rng.NormFloat64())))
		}
		dst := quant.Codes{Weight: make([]byte, len(src.Weight)), Scales: make([]byte, len(src.Scales)), Biases: make([]byte, len(src.Biases))}
		f.ToPanels(dst, src, rows, cols)

		perChunk := 32 / f.Bits
		for r := range rows {
			for c := range cols {
				// where 16 rows' next inputs begin
				chunk := (r/16*cols + c/perChunk*perChunk) * 16 * f.Bits / 8
				b := dst.Weight[chunk+r%16*4+c%4]
				got := int(b) >> (c % perChunk / 4 * f.Bits) & (1<<f.Bits - 1)
				if want := code(src.Weight[f.WeightBytes(r, cols):], f.Bits, c); got != want {
					t.Fatalf("%v row %d input %d: got code %d, want %d", f, r, c, got, want)
				}
			}
		}
		panels := f
		panels.Layout = quant.Panels
		got, want := make([]float32, cols), make([]float32, cols)
		for r := range rows {
			f.Unpack(want, cols, src.Weight, src.Scales, src.Biases, r)
			panels.Unpack(got, cols, dst.Weight, dst.Scales, dst.Biases, r)
			for c := range got {
				if got[c] != want[c] {
					t.Fatalf("%v row %d input %d: got %v, want %v", panels, r, c, got[c], want[c])
				}
			}
		}
	}
}

func TestPanelsHold(t *testing.T) {
	f := quant.Format{Kind: quant.Affine, Bits: 4, Group: 64, Layout: quant.Panels}
	if f.HoldsRows(24) || !f.HoldsRows(32) || !(quant.Format{Kind: quant.BF16, Layout: quant.Panels}).HoldsRows(3) {
		t.Error("panels hold multiples of 16 rows, other formats any")
	}
	if got := f.String(); got != "q4g64p" {
		t.Errorf("name %q", got)
	}
}

// The worked example of the format: every 16th word belongs to a row, with its codes interleaved.
func TestPanelsExample(t *testing.T) {
	for bits, want := range map[int]uint32{8: 0x76543210, 4: 0x73625140, 2: 0x50dd5088} {
		f := quant.Format{Kind: quant.Affine, Bits: bits, Group: 32}
		src, dst := make([]byte, f.WeightBytes(16, 32)), make([]byte, f.WeightBytes(16, 32))
		binary.LittleEndian.PutUint32(src[f.WeightBytes(5, 32)+4:], 0x76543210) // word 1 of row 5
		f.ToPanels(quant.Codes{Weight: dst}, quant.Codes{Weight: src}, 16, 32)
		if got := binary.LittleEndian.Uint32(dst[(16+5)*4:]); got != want {
			t.Errorf("%d bits: got %#x, want %#x", bits, got, want)
		}
	}
}

// Nil fields are left out, a part of a matrix equals its place in the whole, and the last tile of a
// row may be shorter than a cache line.
func TestPanelsInParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	const rows = 32
	for _, f := range formats {
		cols := 3 * 128
		random := func(n int) []byte {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			return b
		}
		src := quant.Codes{Weight: random(f.WeightBytes(rows, cols)), Scales: random(f.ScaleBytes(rows, cols)), Biases: random(f.ScaleBytes(rows, cols))}
		whole := quant.Codes{Weight: random(len(src.Weight)), Scales: random(len(src.Scales)), Biases: random(len(src.Biases))}
		f.ToPanels(whole, src, rows, cols)
		w, s := len(src.Weight)/2, len(src.Scales)/2
		weight, scales, biases := make([]byte, w), make([]byte, s), make([]byte, s)
		f.ToPanels(quant.Codes{Weight: weight}, quant.Codes{Weight: src.Weight[w:]}, 16, cols)
		f.ToPanels(quant.Codes{Scales: scales}, quant.Codes{Scales: src.Scales[s:]}, 16, cols)
		f.ToPanels(quant.Codes{Biases: biases}, quant.Codes{Biases: src.Biases[s:]}, 16, cols)
		if !bytes.Equal(weight, whole.Weight[w:]) || !bytes.Equal(scales, whole.Scales[s:]) || !bytes.Equal(biases, whole.Biases[s:]) {
			t.Errorf("%v: the second panel alone differs from that of the whole", f)
		}
		for r := range rows {
			for g := range cols / f.Group {
				at := 2 * ((r/16*(cols/f.Group)+g)*16 + r%16)
				from := 2 * (r*(cols/f.Group) + g)
				if !bytes.Equal(whole.Scales[at:at+2], src.Scales[from:from+2]) || !bytes.Equal(whole.Biases[at:at+2], src.Biases[from:from+2]) {
					t.Fatalf("%v row %d group %d: scale or bias is not where it belongs", f, r, g)
				}
			}
		}
	}
}

func TestIn(t *testing.T) {
	q := quant.Format{Kind: quant.Affine, Bits: 4, Group: 64}
	for _, c := range []struct {
		f    quant.Format
		l    quant.Layout
		rows int
		want quant.Layout
	}{
		{q, quant.Panels, 32, quant.Panels}, {q, quant.Panels, 24, quant.Rows}, {q, quant.Panels, 1, quant.Rows}, {q, quant.Rows, 32, quant.Rows},
		{q.In(quant.Panels, 32), quant.Rows, 32, quant.Rows}, {quant.Format{Kind: quant.BF16}, quant.Panels, 32, quant.Rows},
	} {
		if got := c.f.In(c.l, c.rows); got.Layout != c.want || got.Bits != c.f.Bits || got.Group != c.f.Group || got.Kind != c.f.Kind {
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
	for _, f := range []quant.Format{{Kind: quant.Affine, Bits: 2, Group: 64}, {Kind: quant.Affine, Bits: 4, Group: 64}, {Kind: quant.Affine, Bits: 8, Group: 64}} {
		b.Run("format="+f.String(), func(b *testing.B) {
			make3 := func() quant.Codes {
				return quant.Codes{Weight: make([]byte, f.WeightBytes(rows, cols)), Scales: make([]byte, f.ScaleBytes(rows, cols)), Biases: make([]byte, f.ScaleBytes(rows, cols))}
			}
			dst, src := make3(), make3()
			b.SetBytes(int64(f.Bytes(rows, cols)))
			for b.Loop() {
				f.ToPanels(dst, src, rows, cols)
			}
		})
	}
}

// ToRows undoes ToPanels, also for rows with an odd number of words, and only for whole panels.
func TestToRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	const rows = 48
	for _, f := range formats {
		for _, cols := range []int{f.Group, 3 * f.Group, 2048} {
			src := quant.Codes{Weight: random(f.WeightBytes(rows, cols)), Scales: random(f.ScaleBytes(rows, cols)), Biases: random(f.ScaleBytes(rows, cols))}
			panels := quant.Codes{Weight: random(len(src.Weight)), Scales: random(len(src.Scales)), Biases: random(len(src.Biases))}
			f.ToPanels(panels, src, rows, cols)
			back := quant.Codes{Weight: random(len(src.Weight)), Scales: random(len(src.Scales)), Biases: random(len(src.Biases))}
			f.ToRows(back, panels, rows, cols)
			if !bytes.Equal(back.Weight, src.Weight) || !bytes.Equal(back.Scales, src.Scales) || !bytes.Equal(back.Biases, src.Biases) {
				t.Errorf("%v of %d inputs: not what it was", f, cols)
			}
			w, s := len(src.Weight)/3, len(src.Scales)/3
			part := quant.Codes{Weight: random(w), Scales: random(s)}
			f.ToRows(part, quant.Codes{Weight: panels.Weight[w : 2*w], Scales: panels.Scales[s : 2*s]}, rows/3, cols)
			if !bytes.Equal(part.Weight, src.Weight[w:2*w]) || !bytes.Equal(part.Scales, src.Scales[s:2*s]) {
				t.Errorf("%v of %d inputs: the second panel alone is not what it was", f, cols)
			}
		}
	}
}
