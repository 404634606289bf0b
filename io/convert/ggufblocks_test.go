package convert_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// blockNames are the tensors of qwen3moe in a file and in a pack, with a layer's number for %d.
var blockNames = map[string]string{
	"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight", "output.weight": "lm_head.weight",
	"blk.%d.attn_norm.weight": "model.layers.%d.input_layernorm.weight", "blk.%d.ffn_norm.weight": "model.layers.%d.post_attention_layernorm.weight",
	"blk.%d.attn_q.weight": "model.layers.%d.self_attn.q_proj.weight", "blk.%d.attn_k.weight": "model.layers.%d.self_attn.k_proj.weight",
	"blk.%d.attn_v.weight": "model.layers.%d.self_attn.v_proj.weight", "blk.%d.attn_output.weight": "model.layers.%d.self_attn.o_proj.weight",
	"blk.%d.attn_q_norm.weight": "model.layers.%d.self_attn.q_norm.weight", "blk.%d.attn_k_norm.weight": "model.layers.%d.self_attn.k_norm.weight",
	"blk.%d.ffn_gate_inp.weight": "model.layers.%d.mlp.gate.weight",
}

func openBlocks(t *testing.T, name string) *gguf.Model {
	t.Helper()
	m, err := gguf.OpenModel(fixtures.Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func numbersOf(t *testing.T, m *gguf.Model, name string) []float32 {
	t.Helper()
	x := m.Tensor(name)
	if x == nil {
		t.Fatalf("no tensor %q", name)
	}
	out := make([]float32, x.Elements())
	if err := x.Floats(out, 0); err != nil {
		t.Fatal(err)
	}
	return out
}

// Blocks become the numbers that they are, in every tensor, and so do the experts of layers whose
// types differ.
func TestConvertGGUFBlocks(t *testing.T) {
	m := openBlocks(t, fixtures.ExactGGUF)
	got := openPack(t, mustConvert(t, fixtures.Path(t, fixtures.ExactGGUF), convert.Options{}))
	for from, to := range blockNames {
		for layer := range 2 {
			a, b := from, to
			if strings.Contains(from, "%d") {
				a, b = fmt.Sprintf(from, layer), fmt.Sprintf(to, layer)
			}
			want := numbersOf(t, m, a)
			if !slices.Equal(vector(t, got, b, len(want)), want) {
				t.Errorf("%s is not what %s of %v says", b, a, m.Tensor(a).Type)
			}
		}
	}
	layout := got.layout()
	for layer := range 2 {
		for i, p := range []string{"gate", "up", "down"} {
			part := []struct{ rows, cols, at int }{{layout.Gate.Rows, layout.Gate.Cols, layout.Gate.WeightOffset},
				{layout.Up.Rows, layout.Up.Cols, layout.Up.WeightOffset}, {layout.Down.Rows, layout.Down.Cols, layout.Down.WeightOffset}}[i]
			all := numbersOf(t, m, fmt.Sprintf("blk.%d.ffn_%s_exps.weight", layer, p))
			for e := range got.cfg.NumExperts {
				n := part.rows * part.cols
				have := unpack(quant.F32, part.rows, part.cols, got.record(layer, e)[part.at:][:4*n], nil, nil)
				if !slices.Equal(have, all[e*n:(e+1)*n]) {
					t.Errorf("layer %d expert %d: %s differs", layer, e, p)
				}
			}
		}
	}
}

// Numbers that no float32 is are refused with the tensor and its type, unless codes are asked for:
// then they are quantised from what the blocks say.
func TestConvertGGUFRounded(t *testing.T) {
	path := fixtures.Path(t, fixtures.RoundedGGUF)
	err := convert.Convert(context.Background(), path, filepath.Join(t.TempDir(), "pack"), unsafely(convert.Options{}))
	if err == nil || !strings.Contains(err.Error(), `tensor "blk.`) || !strings.Contains(err.Error(), "Q5_K is taken only by convert with --bits") ||
		!strings.Contains(err.Error(), "--bits") {
		t.Errorf("got %v", err)
	}
	m := openBlocks(t, fixtures.RoundedGGUF)
	got := openPack(t, mustConvert(t, path, convert.Options{Bits: 8}))
	f, w, s, b := got.matrix("model.layers.1.self_attn.k_proj", 128, 256)
	want := numbersOf(t, m, "blk.1.attn_k.weight")
	codes, scales, biases := make([]byte, len(want)), make([]byte, len(want)/32), make([]byte, len(want)/32)
	if err := f.Quantize(codes, scales, biases, want); err != nil || f.Bits() != 8 {
		t.Fatal(f, err)
	}
	sameBytes(t, "codes", w, codes)
	sameBytes(t, "scales", s, scales)
	sameBytes(t, "biases", b, biases)
}

// Formats whose numbers are a product plus another are not exact; all others are.
func TestExactBlocks(t *testing.T) {
	inexact := []string{"Q2_K", "Q4_1", "Q4_K", "Q5_1", "Q5_K"}
	for _, b := range quant.Blocks() {
		if b.Exact() == slices.Contains(inexact, b.Name) {
			t.Errorf("%s: exact is %v", b, b.Exact())
		}
	}
}
