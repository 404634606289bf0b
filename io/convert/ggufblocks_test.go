package convert_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
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

// matrixNumbers returns what a matrix of a pack stands for.
func matrixNumbers(t *testing.T, p *pack, name string, rows, cols int) []float32 {
	t.Helper()
	m, err := p.w.Matrix(name, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	at := p.w.Mapping()
	return unpack(m.Format, rows, cols, at[m.WeightOffset:], at[m.ScalesOffset:], at[m.BiasesOffset:])
}

// Blocks stay the blocks that they are, in every tensor, and so do those of experts, whose types
// differ by layer: records of all layers have the length of the longest.
func TestConvertGGUFBlocks(t *testing.T) {
	for _, name := range []string{fixtures.ExactGGUF, fixtures.RoundedGGUF} {
		m := openBlocks(t, name)
		dir := mustConvert(t, fixtures.Path(t, name), convert.Options{})
		if err := convert.Verify(context.Background(), dir); err != nil {
			t.Error(err)
		}
		got := openPack(t, dir)
		for from, to := range blockNames {
			for layer := range 2 {
				a, b := from, to
				if strings.Contains(from, "%d") {
					a, b = fmt.Sprintf(from, layer), fmt.Sprintf(to, layer)
				}
				sameTensor(t, m, got, a, b)
			}
		}
		if !got.x.Mixed() {
			t.Errorf("%s: layers have the same formats: the test shows nothing", name)
		}
		for layer := range 2 {
			l := got.x.LayoutOf(layer)
			if l.Bytes != got.x.Layout().Bytes {
				t.Errorf("layer %d has records of %d bytes", layer, l.Bytes)
			}
			for i, p := range []model.ExpertPart{l.Gate, l.Up, l.Down} {
				x := m.Tensor(fmt.Sprintf("blk.%d.ffn_%s_exps.weight", layer, []string{"gate", "up", "down"}[i]))
				if p.Format != quant.InBlock(x.Type.Format) {
					t.Errorf("layer %d: %v became %v", layer, x.Type, p.Format)
				}
				record, n := make([]byte, l.Bytes), len(x.Data)/got.cfg.NumExperts
				for e := range got.cfg.NumExperts {
					if err := got.x.ReadExpert(layer, e, record); err != nil {
						t.Fatal(err)
					}
					sameBytes(t, x.Name, record[p.WeightOffset:][:n], x.Data[e*n:(e+1)*n])
				}
			}
		}
	}
}

// sameTensor compares a tensor with what became of it.
func sameTensor(t *testing.T, m *gguf.Model, got *pack, from, to string) {
	t.Helper()
	x, want := m.Tensor(from), numbersOf(t, m, from)
	d := got.w.Manifest().Tensors[to]
	if len(x.Shape) == 1 {
		if !slices.Equal(vector(t, got, to, len(want)), want) {
			t.Errorf("%s is not what %s says", to, from)
		}
		return
	}
	if d.DType != safetensors.DType(x.Type.Name) {
		t.Errorf("%s of %v became %s", from, x.Type, d.DType)
	}
	sameBytes(t, to, got.w.Mapping()[d.Offset:][:d.Size], x.Data)
	if !slices.Equal(matrixNumbers(t, got, strings.TrimSuffix(to, ".weight"), x.Shape[0], x.Shape[1]), want) {
		t.Errorf("%s is not what %s of %v says", to, from, x.Type)
	}
}

// Codes that are asked for are made of what the blocks say.
func TestConvertGGUFRounded(t *testing.T) {
	path := fixtures.Path(t, fixtures.RoundedGGUF)
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
	if got.x.Mixed() {
		t.Error("codes that are all of 8 bits have several layouts")
	}
}

// Types whose codes nobody here knows are refused by name, with the tensor.
func TestConvertGGUFUnknownTypes(t *testing.T) {
	raw := readFile(t, fixtures.Path(t, fixtures.ExactGGUF))
	const name = "blk.1.attn_k.weight"
	at := bytes.Index(raw, []byte(name)) + len(name) + 4 + 2*8 // after axes
	for id, kind := range map[uint32]string{16: "IQ2_XXS", 17: "IQ2_XS", 22: "IQ2_S", 18: "IQ3_XXS", 21: "IQ3_S", 19: "IQ1_S", 29: "IQ1_M"} {
		binary.LittleEndian.PutUint32(raw[at:], id)
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := convert.Load(path); err == nil || !strings.Contains(err.Error(), kind) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", kind, err)
		}
	}
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
