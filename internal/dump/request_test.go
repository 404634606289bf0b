package dump_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/dump"
	"github.com/moeflux/moeflux-actor/internal/eval"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/safetensors"
)

// find returns a tensor of a dump by its name.
func find(t *testing.T, all []safetensors.Tensor, name string) safetensors.Tensor {
	t.Helper()
	for _, x := range all {
		if x.Name == name {
			return x
		}
	}
	t.Fatalf("there is no %s", name)
	return safetensors.Tensor{}
}

// same compares the rows of two tensors from a row of the first one on.
func same(t *testing.T, a safetensors.Tensor, from int, b safetensors.Tensor) {
	t.Helper()
	row := len(a.Data) / a.Shape[0]
	if got, want := string(b.Data), string(a.Data[from*row:]); got != want {
		t.Errorf("%s %v is not %s %v from row %d on", b.Name, b.Shape, a.Name, a.Shape, from)
	}
}

// What a whole text gives to a layer or to experts, given to them alone, comes to the same bits: at
// the first position, and after a part of the text.
func TestPartsAreTheWhole(t *testing.T) {
	for _, name := range []string{fixtures.Qwen35MoEQ4, fixtures.Qwen3MoEBF16, fixtures.MiniMaxM2BF16} {
		dir := fixtures.Packed(t, name, 0)
		ids := []int32{7, 1, 30, 5}
		whole := run(t, dir, dump.Request{Texts: []eval.Prompt{{Name: "p", IDs: ids}}, Layers: "0-"})
		at := func(what string) safetensors.Tensor { return find(t, whole, "p.layer.1."+what) }
		given := func(name string, from safetensors.Tensor, first int) string {
			row := len(from.Data) / from.Shape[0]
			return write(t, []safetensors.Tensor{{Name: name, DType: from.DType, Shape: []int{from.Shape[0] - first, from.Shape[1]}, Data: from.Data[first*row:]}})
		}
		for first := range 3 {
			r := dump.Request{Input: given("p.input", at("input"), first), Layers: "1"}
			if first > 0 {
				r.Texts = []eval.Prompt{{Name: "p", IDs: ids[:first]}}
			} else {
				r.Plain = true
			}
			alone := run(t, dir, r)
			for _, what := range []string{"input", "input_norm", "attn", "residual", "picks", "weights", "experts", "sum", "output"} {
				same(t, at(what), first, find(t, alone, "p.layer.1."+what))
			}
		}
		experts := run(t, dir, dump.Request{Input: given("p", at("post_norm"), 0), Layers: "1", Only: "experts"})
		for _, what := range []string{"picks", "experts", "routed", "sum"} {
			same(t, at(what), 0, find(t, experts, "p.layer.1."+what))
		}
		embedding := run(t, dir, dump.Request{Texts: []eval.Prompt{{Name: "p", IDs: ids}}, Layers: "0", Only: "embedding"})
		same(t, find(t, whole, "p.layer.0.input"), 0, embedding[0])
		if embedding[0].Name != "p.embedding" {
			t.Errorf("the embedding is called %s", embedding[0].Name)
		}
	}
}

// Experts by themselves are summed with their weights.
func TestChosenExperts(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen3MoEBF16, 0)
	input := write(t, run(t, dir, dump.Request{Texts: []eval.Prompt{{Name: "p", IDs: []int32{1, 2}}}, Layers: "0", Only: "embedding"}))
	all := run(t, dir, dump.Request{Input: input, Layers: "1", Only: "experts", Experts: []int{5, 2}, Weights: []float32{0.5, -2}})
	each, sum := find(t, all, "p.embedding.layer.1.experts"), find(t, all, "p.embedding.layer.1.sum")
	if fmt.Sprint(each.Shape) != fmt.Sprint([]int{2, 2, sum.Shape[1]}) {
		t.Fatalf("experts have shape %v, sums %v", each.Shape, sum.Shape)
	}
	at := func(x safetensors.Tensor, i int) float64 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(x.Data[4*i:])))
	}
	n := sum.Shape[1]
	for i := range 2 * n {
		row, c := i/n, i%n
		want := 0.5*at(each, 2*row*n+c) - 2*at(each, (2*row+1)*n+c)
		if d := math.Abs(at(sum, i) - want); !(d <= 1e-6) {
			t.Fatalf("sum %d is %v, want %v", i, at(sum, i), want)
		}
	}
	one := run(t, dir, dump.Request{Input: input, Layers: "1", Only: "experts", Experts: []int{2}})
	row := len(each.Data) / 4
	if got := find(t, one, "p.embedding.layer.1.experts"); string(got.Data[:row]) != string(each.Data[row:2*row]) {
		t.Error("an expert by itself is not the same as beside another one")
	}
	head := run(t, dir, dump.Request{Input: input, Layers: "0-", Only: "head"})
	if len(head) != 2 || head[0].Name != "p.embedding.final_norm" || head[1].Name != "p.embedding.logits" || head[1].Shape[0] != 2 {
		t.Errorf("the head gives %v", head)
	}
}

// Requests that make no sense are the caller's mistakes.
func TestRequestsRefused(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen3MoEBF16, 0)
	texts := []eval.Prompt{{Name: "p", IDs: []int32{1}}}
	input := write(t, run(t, dir, dump.Request{Texts: texts, Layers: "0", Only: "embedding"}))
	for want, r := range map[string]dump.Request{
		"no part":               {Texts: texts, Only: "tail"},
		"neither token ids":     {},
		"of token ids":          {Input: input, Only: "embedding"},
		"head needs":            {Texts: texts, Only: "head"},
		"experts needs":         {Texts: texts, Only: "experts"},
		"one by one":            {Input: input, OneByOne: true},
		"part experts alone":    {Texts: texts, Experts: []int{1}},
		"1 weights for 2":       {Input: input, Only: "experts", Experts: []int{1, 2}, Weights: []float32{1}},
		"layers 0 to":           {Texts: texts, Layers: "77"},
		"no hidden states for":  {Texts: texts, Input: input},
		"expert 999 is outside": {Input: input, Only: "experts", Experts: []int{999}},
		"experts, but a token":  {Input: input, Only: "experts", Experts: []int{0, 1, 2, 3, 4, 5, 6, 7}},
	} {
		if r.Layers == "" {
			r.Layers = "0"
		}
		_, err := try(t, dir, r)
		if _, ok := errors.AsType[*dump.SettingError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want a SettingError that says %q", r, err, want)
		}
	}
	bad := write(t, []safetensors.Tensor{floats("x", []int{1, 3}, 1, 2, 3)})
	if _, err := try(t, dir, dump.Request{Input: bad, Layers: "0"}); err == nil || !strings.Contains(err.Error(), "hidden states are [rows, ") {
		t.Errorf("hidden states of 3 channels: %v", err)
	}
}
