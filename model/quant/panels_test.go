package quant_test

import (
	"encoding/binary"
	"math/rand/v2"
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
				chunk := (r/16*cols + c/perChunk*perChunk) * 16 * f.Bits / 8 // where 16 rows' next inputs begin
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
