package dump_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/dump"
	"github.com/moeflux/moeflux-actor/internal/eval"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/io/weights"
)

// dumpOf dumps all layers of a packed model for a short text.
func dumpOf(t *testing.T, dir string, o dump.Request) []safetensors.Tensor {
	t.Helper()
	o.Texts, o.Layers = []eval.Prompt{{Name: "p", IDs: []int32{7, 1, 30, 5}}}, "0-"
	return run(t, dir, o)
}

// run makes a request of a packed model.
func run(t *testing.T, dir string, o dump.Request) []safetensors.Tensor {
	t.Helper()
	all, err := try(t, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func try(t *testing.T, dir string, o dump.Request) ([]safetensors.Tensor, error) {
	t.Helper()
	dev, err := host.New(host.Config{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	e, err := actors.Open(t.Context(), actors.Config{Model: dir, Device: dev})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	span := func(ctx context.Context, _ string) (context.Context, func()) { return ctx, func() {} }
	all, names, err := dump.Run(t.Context(), e, span, o, nil)
	if err == nil && len(names) == 0 {
		t.Error("a dump of nothing")
	}
	return all, err
}

// write writes a dump to a file.
func write(t *testing.T, all []safetensors.Tensor) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dump.safetensors")
	if err := safetensors.WriteFile(path, all, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

func compare(t *testing.T, a, b string) *dump.Comparison {
	t.Helper()
	c, err := dump.CompareFiles(a, b, 1e-3)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// changed returns a copy of a dump in which a number of each tensor from first on is another one:
// an error, and what follows from it.
func changed(all []safetensors.Tensor, first int) []safetensors.Tensor {
	out := slices.Clone(all)
	for i := first; i < len(out); i++ {
		data := slices.Clone(out[i].Data)
		at := len(data) / 8 * 4 // one in the middle
		if out[i].DType == safetensors.I32 {
			data[at] ^= 1
		} else {
			x := math.Float32frombits(binary.LittleEndian.Uint32(data[at:]))
			binary.LittleEndian.PutUint32(data[at:], math.Float32bits(x+1e3))
		}
		out[i].Data = data
	}
	return out
}

// An error in any tensor of any family is found, and it is what comes first, not what follows from
// it.
func TestCompareFindsEveryTensor(t *testing.T) {
	for _, name := range []string{fixtures.Qwen35MoEQ4, fixtures.DeepseekV3Q4, fixtures.Glm4MoEBF16} {
		dir := fixtures.Packed(t, name, 0)
		for _, o := range []dump.Request{{}, {OneByOne: true}} {
			all := dumpOf(t, dir, o)
			a := write(t, all)
			if c := compare(t, a, a); c.First != nil || c.Departed != 0 || c.Compared != len(all) || !strings.HasPrefix(c.Text(), "all ") {
				t.Errorf("%s: a dump departs from itself: %+v", name, c.First)
			}
			for i := range all {
				c := compare(t, a, write(t, changed(all, i)))
				if c.First == nil || c.First.Name != all[i].Name || c.Departed != len(all)-i {
					t.Errorf("%s: an error in %s: the first is %+v, %d depart, want %d", name, all[i].Name, c.First, c.Departed, len(all)-i)
				}
				if only := strings.Contains(c.Text(), "is the only one of"); only != (i == len(all)-1) {
					t.Errorf("%s: an error in %s: %q", name, all[i].Name, c.Text())
				}
			}
		}
	}
}

// A pack with a tensor of weights spoilt departs where that tensor is used first.
func TestCompareFindsSpoiltWeights(t *testing.T) {
	for _, c := range []struct {
		fixture, tensor, want string
		o                     dump.Request
	}{
		{fixtures.Qwen35MoEBF16, "model.embed_tokens.weight", "p.layer.0.input", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.1.input_layernorm.weight", "p.layer.1.input_norm", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.1.linear_attn.in_proj_qkv.weight", "p.layer.1.qkv", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.1.linear_attn.in_proj_z.weight", "p.layer.1.z", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.1.linear_attn.in_proj_a.weight", "p.layer.1.alpha", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.1.linear_attn.in_proj_b.weight", "p.layer.1.beta", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.1.linear_attn.conv1d.weight", "p.layer.1.conv", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.1.linear_attn.dt_bias", "p.layer.1.state", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.1.linear_attn.norm.weight", "p.layer.1.heads_gated", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.1.linear_attn.out_proj.weight", "p.layer.1.attn", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.1.post_attention_layernorm.weight", "p.layer.1.post_norm", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.1.mlp.gate.weight", "p.layer.1.router_scores", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.1.mlp.shared_expert_gate.weight", "p.layer.1.shared_gate", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.1.mlp.shared_expert.down_proj.weight", "p.layer.1.shared", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "experts of layer 1", "p.layer.1.experts", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.3.self_attn.q_norm.weight", "p.layer.3.q", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.3.self_attn.k_proj.weight", "p.layer.3.k", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.3.self_attn.v_proj.weight", "p.layer.3.v", dump.Request{}},
		{fixtures.Qwen35MoEBF16, "model.layers.3.self_attn.o_proj.weight", "p.layer.3.attn", dump.Request{}},
		{fixtures.DeepseekV3BF16, "model.layers.1.self_attn.q_a_layernorm.weight", "p.layer.1.q_lat", dump.Request{}},
		{fixtures.DeepseekV3BF16, "model.layers.1.self_attn.q_b_proj.weight", "p.layer.1.q", dump.Request{}},
		{fixtures.DeepseekV3BF16, "model.layers.1.self_attn.kv_a_layernorm.weight", "p.layer.1.kv_lat", dump.Request{}},
		{fixtures.DeepseekV3BF16, "model.layers.1.self_attn.kv_b_proj.weight", "p.layer.1.q_folded", dump.Request{OneByOne: true}},
		{fixtures.DeepseekV3BF16, "model.layers.0.mlp.down_proj.weight", "p.layer.0.sum", dump.Request{}},
		{fixtures.DeepseekV3BF16, "model.layers.2.mlp.gate.e_score_correction_bias", "p.layer.2.picks", dump.Request{}},
	} {
		dir := fixtures.Packed(t, c.fixture, 0)
		good := write(t, dumpOf(t, dir, c.o))
		bad := write(t, dumpOf(t, spoilt(t, dir, c.tensor), c.o))
		if r := compare(t, good, bad); r.First == nil || r.First.Name != c.want {
			t.Errorf("%s, %s spoilt: the first to depart is %+v, want %s", c.fixture, c.tensor, r.First, c.want)
		}
	}
}

// spoilt copies a packed model and turns the signs of a tensor's numbers around.
func spoilt(t *testing.T, dir, tensor string) string {
	t.Helper()
	out := t.TempDir()
	if err := os.CopyFS(out, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if layer, ok := strings.CutPrefix(tensor, "experts of layer "); ok {
		path := filepath.Join(out, "packed_experts", fmt.Sprintf("layer_0%s.bin", layer))
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		negate(t, path, 0, info.Size(), 2)
		return out
	}
	w, err := weights.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := w.Manifest().Tensors[tensor]
	path := w.Path()
	if err := w.Close(); err != nil || !ok {
		t.Fatalf("%s: %v, there: %v", tensor, err, ok)
	}
	width := int64(2)
	if d.DType == safetensors.F32 {
		width = 4
	}
	negate(t, path, d.Offset, d.Size, width)
	return out
}

// negate turns the signs of numbers of width bytes around.
func negate(t *testing.T, path string, at, size, width int64) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := at + width - 1; i < at+size; i += width {
		data[i] ^= 0x80
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func floats(name string, shape []int, x ...float32) safetensors.Tensor {
	t := safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: shape}
	for _, v := range x {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(v))
	}
	return t
}

// Numbers are compared with the largest of their row; what is no number departs unless it is the
// same on both sides, and so do other shapes.
func TestCompareNumbers(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name    string
		a, b    safetensors.Tensor
		departs bool
		index   string
	}{
		{"within", floats("x", []int{2, 2}, 1, 1000, 1, 10), floats("x", []int{2, 2}, 1.9, 1000, 1, 10), false, "[0 0]"},
		{"beyond, in a row of smaller numbers", floats("x", []int{2, 2}, 1, 1000, 1, 10), floats("x", []int{2, 2}, 1.5, 1000, 1.02, 10), true, "[1 0]"},
		{"zeros", floats("x", []int{2}, 0, 0), floats("x", []int{2}, 0, 1e-30), true, "[1]"},
		{"the same NaN", floats("x", []int{2}, nan, 1), floats("x", []int{2}, nan, 1), false, "[]"},
		{"a NaN", floats("x", []int{2}, 1, 1), floats("x", []int{2}, 1, nan), true, "[1]"},
		{"shapes", floats("x", []int{2}, 1, 1), floats("x", []int{1, 2}, 1, 1), true, "[]"},
	} {
		r := compare(t, write(t, []safetensors.Tensor{c.a}), write(t, []safetensors.Tensor{c.b}))
		if d := r.Tensors[0]; d.Departs != c.departs || fmt.Sprint(d.Index) != c.index || (r.First != nil) != c.departs {
			t.Errorf("%s: %+v, want departs %v at %s", c.name, d, c.departs, c.index)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if r.Text() == "" {
			t.Errorf("%s: no words", c.name)
		}
	}
	a, b := floats("p.layer.0.q", []int{1}, 1), floats("p.layer.0.k", []int{1}, 1)
	if _, err := dump.CompareFiles(write(t, []safetensors.Tensor{a}), write(t, []safetensors.Tensor{b}), 0); err == nil {
		t.Error("files with nothing in common are compared")
	}
	r := compare(t, write(t, []safetensors.Tensor{a, b}), write(t, []safetensors.Tensor{b, floats("y", []int{1}, 1)}))
	if fmt.Sprint(r.OnlyA, r.OnlyB) != "[p.layer.0.q] [y]" || !strings.Contains(r.Text(), "has p.layer.0.q") {
		t.Errorf("only a: %v, only b: %v; %s", r.OnlyA, r.OnlyB, r.Text())
	}
}
