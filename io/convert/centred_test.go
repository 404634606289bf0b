package convert_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/safetensors"
)

// mlxStep turns the names of Step-3.5 into those that mlx-lm gives them.
var mlxStep = strings.NewReplacer(".moe.gate_proj.", ".mlp.switch_mlp.gate_proj.", ".moe.up_proj.", ".mlp.switch_mlp.up_proj.", ".moe.down_proj.", ".mlp.switch_mlp.down_proj.",
	".moe.gate.", ".mlp.gate.gate.", ".moe.router_bias", ".mlp.gate.router_bias", ".share_expert.", ".mlp.share_expert.")

// asMLX writes a fixture as mlx-lm converts it, without quantising it: rename renames, norm changes
// norms, and experts of MiniMax-M3 are stacked. Numbers that are changed become float32.
func asMLX(t *testing.T, name string, rename func(string) string, norm func(name string, x float32) float32) string {
	t.Helper()
	src, err := safetensors.OpenDir(fixtures.Dir(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var all []safetensors.Tensor
	stacks := map[string][]safetensors.Tensor{}
	for _, n := range src.Names() {
		x, _ := src.Tensor(n)
		if at, after, ok := strings.Cut(n, ".experts."); ok && norm == nil {
			_, w, _ := strings.Cut(after, ".") // w1.weight of 3.w1.weight
			to := at + ".switch_mlp." + map[string]string{"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}[w[:2]] + ".weight"
			stacks[to] = append(stacks[to], x)
			continue
		}
		if strings.HasSuffix(n, "norm.weight") && norm != nil {
			raw := make([]byte, 0, 4*x.Elements())
			for _, v := range floats(t, x) {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(norm(n, v)))
			}
			x.DType, x.Data = safetensors.F32, raw
		}
		x.Name, x.Data = rename(n), slices.Clone(x.Data)
		all = append(all, x)
	}
	for to, parts := range stacks {
		slices.SortFunc(parts, func(a, b safetensors.Tensor) int { return strings.Compare(a.Name, b.Name) }) // fewer than ten
		x := safetensors.Tensor{Name: rename(to), DType: parts[0].DType, Shape: append([]int{len(parts)}, parts[0].Shape...)}
		for _, p := range parts {
			x.Data = append(x.Data, p.Data...)
		}
		all = append(all, x)
	}
	dir := t.TempDir()
	if err := safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), all, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), readFile(t, filepath.Join(fixtures.Dir(t, name), "config.json")), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Checkpoints of mlx-lm give the model that those give which were trained. Its sanitize functions
// say what becomes of norms of 1+w: step3p5.py adds the 1, minimax_m3.py does not.
func TestConvertMLXNorms(t *testing.T) {
	for name, dir := range map[string]string{
		fixtures.Step35BF16:    asMLX(t, fixtures.Step35BF16, mlxStep.Replace, func(_ string, x float32) float32 { return x + 1 }),
		fixtures.MiniMaxM3BF16: asMLX(t, fixtures.MiniMaxM3BF16, func(n string) string { return n }, nil),
	} {
		got, want := openPack(t, mustConvert(t, dir, convert.Options{})), openPack(t, fixtures.Packed(t, name, 0))
		for _, tensor := range want.w.Names() {
			n := 1
			for _, axis := range want.w.Manifest().Tensors[tensor].Shape {
				n *= axis
			}
			sameFloats(t, fmt.Sprintf("%s: %s", name, tensor), vector(t, got, tensor, n), vector(t, want, tensor, n))
		}
		if len(got.w.Names()) != len(want.w.Names()) {
			t.Errorf("%s: %d tensors, want %d", name, len(got.w.Names()), len(want.w.Names()))
		}
		sameExperts(t, got, want)
	}
}

// A norm that mlx-lm would change once more is refused by name.
func TestConvertMLXNormTwice(t *testing.T) {
	const odd = "model.layers.1.post_attention_layernorm.weight"
	dir := asMLX(t, fixtures.Step35BF16, mlxStep.Replace, func(name string, x float32) float32 {
		if name == odd {
			return x - 1
		}
		return x + 1
	})
	err := convert.Convert(context.Background(), dir, filepath.Join(t.TempDir(), "pack"), convert.Options{})
	if err == nil || !strings.Contains(err.Error(), odd) || !strings.Contains(err.Error(), "whose norms are of 1+w") {
		t.Errorf("got %v", err)
	}
}
