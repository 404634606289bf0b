package actors_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// choices wants the positions that each layer of a model with indexers attends to.
func choices(e *actors.Engine) (all []actors.Want) {
	if e.Model().IndexTopK == 0 {
		return nil
	}
	for i, l := range e.Model().Layers {
		if l.Indexer == model.NoIndexer {
			continue
		}
		all = append(all, actors.Want{Quantity: stages.DumpPositions, Layer: i})
	}
	return all
}

// samePositions wants the positions that the reference lists under a name for each indexer, from
// row first on, also in the layers that share a choice.
func (c *comparer) samePositions(p string, got []actors.Tensor, ref *fixtures.Numbers, name string, first, rows int) {
	c.t.Helper()
	for r := range rows {
		for i, layer := range c.layers {
			if x, want := chosen(layer, i, got, ref, name, r, first+r); !slices.Equal(x, want) {
				c.t.Fatalf("%s: layer %d attends at row %d to %v, want %v", p, i, first+r, x, want)
			}
		}
	}
}

// chosenAs reports whether row r of a dump attends to the positions that the reference lists for it
// under a name, in each layer. It does in a model without indexers.
func chosenAs(m *model.Config, got []actors.Tensor, ref *fixtures.Numbers, name string, r int) bool {
	for i, layer := range m.Layers {
		if x, want := chosen(layer, i, got, ref, name, r, r); !slices.Equal(x, want) {
			return false
		}
	}
	return true
}

// chosen returns what row r of a dump attends to in layer i, and what the reference lists for row
// of the text, positions or for each head blocks; neither for a layer that attends to all.
func chosen(layer model.Layer, i int, got []actors.Tensor, ref *fixtures.Numbers, name string, r, row int) (x, want []int32) {
	if layer.Indexer == model.NoIndexer {
		return nil, nil
	}
	own := layer.IndexerIndex
	if layer.Indexer == model.LowerIndexer {
		own--
	}
	if layer.Mixer == model.FullAttention {
		name = strings.Replace(name, "index_topk", "index_blocks", 1)
	}
	all, shape := ref.I32(name)
	heads, rows, k := 1, shape[len(shape)-2], shape[len(shape)-1]
	if len(shape) == 4 {
		heads = shape[1]
	}
	for h := range heads {
		at := ((own*heads+h)*rows + row) * k
		want = append(want, all[at:at+k]...)
	}
	width := heads * k
	return stages.FindTensor(got, actors.Want{Quantity: stages.DumpPositions, Layer: i}).Ints[r*width : (r+1)*width], want
}

// budgeted opens a model whose indexers choose as many positions as is said.
func budgeted(t *testing.T, name string, positions int) *actors.Engine {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(fixtures.Packed(t, name, 0))); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"config.json", "model_weights.json"} {
		path := filepath.Join(dir, file)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		other := regexp.MustCompile(`"index_topk": *\d+`).ReplaceAll(raw, fmt.Appendf(nil, `"index_topk": %d`, positions))
		if err := os.WriteFile(path, other, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e := open(t, actors.Config{Model: dir, Device: device(t, 2), ChunkRows: 1})
	if e.Model().IndexTopK != positions {
		t.Fatalf("the model chooses %d positions, want %d", e.Model().IndexTopK, positions)
	}
	return e
}

// TestBudget wants the bits of dense attention as long as a text fits into the budget, and others
// from the first position on that has to choose.
func TestBudget(t *testing.T) {
	for _, name := range []string{fixtures.GlmMoEDSASharedBF16, fixtures.DeepseekV32BF16} {
		dense, chosen := budgeted(t, name, 4096), budgeted(t, name, 20)
		text := prompt(4, 21, dense.Model().VocabSize)
		a, b := sequence(t, dense), sequence(t, chosen)
		for i, id := range text {
			if same := slices.Equal(eval(t, a, id), eval(t, b, id)); same != (i < 20) {
				t.Errorf("%s: at position %d of a budget of 20 the logits are those of dense attention: %v", name, i, same)
			}
		}
	}
}

// TestChoiceAlone reads texts beyond the budget in chunks and steps of all sizes, alone and beside
// others: the choice of positions, and so the bits, depend on neither. What fits into the budget is
// read token by token, since latent attention has another form for long chunks there.
func TestChoiceAlone(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.GlmMoEDSASharedBF16, 0)
	text := prompt(5, 60, 96)
	var want []float32
	for i, rows := range []int{1, 64, 7, 16} {
		e := open(t, actors.Config{Model: dir, Device: device(t, 1+i%2), ChunkRows: rows})
		var stop func()
		if i > 0 {
			stop = decodeAlong(t, e)
		}
		s := sequence(t, e)
		for _, id := range text[:12] {
			eval(t, s, id)
		}
		var got []float32
		for at := 12; at < len(text); {
			n := min(1+i*(at-7), len(text)-at)
			r, err := s.EvalChunk(ctx, actors.Chunk{Tokens: text[at : at+n], Logits: actors.AllLogits})
			if err != nil {
				t.Fatal(err)
			}
			got, at = append(got, r.Logits...), at+n
		}
		if stop != nil {
			stop()
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("steps of %d rows give other logits", rows)
		}
	}
}

// A probe that leaves out the layer that has to choose is refused where there is a choice.
func TestProbeOfSharedChoice(t *testing.T) {
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.GlmMoEDSASharedBF16, 0)})
	for n, refused := range map[int]bool{12: false, 13: true} {
		s := sequence(t, e)
		_, err := s.EvalChunk(ctx, actors.Chunk{Tokens: prompt(1, n, 96), Logits: actors.NoLogits, Probe: &actors.Probe{Layers: []int{1}}})
		if refused != (err != nil && strings.Contains(err.Error(), "layer 1 attends to the positions that layer 0 chooses")) {
			t.Errorf("%d positions: %v", n, err)
		}
	}
}
