package actors_test

import (
	"fmt"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
	"github.com/moeflux/moeflux-actor/internal/refmodel"
	"github.com/moeflux/moeflux-actor/model"
)

// TestWindowMemory reads texts of 20 windows and more, and wants layers with a window to hold a
// window and a page of them, whatever a text's length, and the logits of a float64 model that keeps
// all positions.
func TestWindowMemory(t *testing.T) {
	for _, name := range []string{fixtures.GptOssBF16, fixtures.MiMoV2FlashBF16, fixtures.Step35BF16} {
		dir := fixtures.Packed(t, name, 0)
		ref, err := refmodel.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		m := ref.Config()
		a := m.Attention(model.WindowAttention)
		const pageRows = 64
		before := (a.Window - 1 + pageRows - 1) / pageRows * pageRows // a window, up to a whole page
		want := int64(m.Count(model.WindowAttention) * (before + pageRows) * (a.KeyDim() + a.ValuesDim()) * 4)
		// Long enough that every page is used again several times.
		text := prompt(5, max(20*a.Window, 5*(before+pageRows))+3, m.VocabSize)
		trace := ref.Forward(text)
		for _, rows := range []int{512, 70, 1} {
			e := open(t, actors.Config{Model: dir, Device: device(t, 2), ChunkRows: rows})
			if got := e.Info().StateBytes; got != want {
				t.Errorf("%s: %d bytes for windows, want %d", name, got, want)
			}
			got, err := sequence(t, e).EvalChunk(ctx, actors.Chunk{Tokens: text, Logits: actors.AllLogits})
			if err != nil {
				t.Fatal(err)
			}
			for p := range text {
				for i, x := range trace.Logits[p] {
					if d := float64(got.Logits[p*m.VocabSize+i]) - x; !(d < 1e-4 && d > -1e-4) {
						t.Fatalf("%s in steps of %d: logit %d of position %d is off by %.2g", name, rows, i, p, d)
					}
				}
			}
			s, err := e.Stats(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if full := (len(text) + pageRows - 1) / pageRows; s.PagesUsed != full {
				t.Errorf("%s: %d pages are in use, want %d of layers without a window", name, s.PagesUsed, full)
			}
		}
	}
}

// TestWindowEqualBits wants the same bits from engines whose pages of windows are used again and
// from one whose pages never are, in steps of any size and in company.
func TestWindowEqualBits(t *testing.T) {
	for _, name := range []string{fixtures.GptOssBF16, fixtures.MiMoV2FlashBF16, fixtures.Step35BF16} {
		for _, kv := range kvFormats {
			dir := fixtures.Packed(t, name, 0)
			logits := func(rows, pages int) []float32 {
				e := open(t, actors.WithWindowPages(actors.Config{Model: dir, Device: device(t, 2), KV: kv, ChunkRows: rows}, pages))
				texts := [][]int32{prompt(6, 701, e.Model().VocabSize), prompt(7, 350, e.Model().VocabSize)}
				var both [2][]float32
				done := make(chan error, 2)
				for i, text := range texts {
					s := sequence(t, e)
					go func() {
						got, err := s.EvalChunk(ctx, actors.Chunk{Tokens: text, Logits: actors.AllLogits})
						if err == nil {
							both[i] = got.Logits
						}
						done <- err
					}()
				}
				for range texts {
					if err := <-done; err != nil {
						t.Fatal(err)
					}
				}
				return append(both[0], both[1]...)
			}
			want := logits(512, 11) // a page for each of 704 positions
			for _, rows := range []int{512, 100, 3} {
				if err := numcmp.Equal(logits(rows, 0), want); err != nil {
					t.Error(fmt.Errorf("%s, %v, steps of %d: %w", name, kv, rows, err))
				}
			}
		}
	}
}
