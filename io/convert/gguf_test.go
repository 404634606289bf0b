package convert_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/refmodel"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
)

// A GGUF file gives the model that its checkpoint gives: every number is the same, whatever order
// and form the file has it in.
func TestConvertGGUF(t *testing.T) {
	for _, name := range fixtures.GGUFs() {
		t.Run(name, func(t *testing.T) {
			dir := mustConvert(t, fixtures.GGUF(t, name), convert.Options{})
			got, want := openPack(t, dir), openPack(t, fixtures.Packed(t, name, 0))
			for _, tensor := range want.w.Names() {
				if strings.Contains(tensor, "kv_b_proj") && !got.w.Has(tensor) {
					sameLatent(t, got, want, strings.TrimSuffix(tensor, "kv_b_proj.weight"))
					continue
				}
				d := want.w.Manifest().Tensors[tensor]
				n := 1
				for _, axis := range d.Shape {
					n *= axis
				}
				sameFloats(t, tensor, vector(t, got, tensor, n), vector(t, want, tensor, n))
				if s := got.w.Manifest().Tensors[tensor].Shape; !slices.Equal(s, d.Shape) {
					t.Errorf("%s has the shape %v, want %v", tensor, s, d.Shape)
				}
			}
			if len(got.w.Names()) < len(want.w.Names()) {
				t.Errorf("%d tensors, want %d", len(got.w.Names()), len(want.w.Names()))
			}
			sameExperts(t, got, want)
			checkReference(t, name, dir)
			if err := convert.Verify(context.Background(), dir); err != nil {
				t.Error(err)
			}
		})
	}
}

func vector(t *testing.T, p *pack, tensor string, n int) []float32 {
	t.Helper()
	v, err := p.w.Vector(tensor, n)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// sameFloats compares bits, but for A_log, which is stored as -exp(A_log): its logarithm is exact
// to the last bit, or to 2^-24 near 0.
func sameFloats(t *testing.T, what string, got, want []float32) {
	t.Helper()
	tolerance := 0.0
	if strings.HasSuffix(what, "A_log") {
		tolerance = 0x1p-23
	}
	for i := range want {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= tolerance*max(1, math.Abs(float64(want[i])))) {
			t.Errorf("%s: number %d is %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

// sameLatent compares the two halves of kv_b_proj, of which that for keys is transposed.
func sameLatent(t *testing.T, got, want *pack, prefix string) {
	t.Helper()
	c := want.cfg
	heads, nope, values, lora := c.NumAttentionHeads, c.QKNopeHeadDim, c.VHeadDim, c.KVLoraRank
	whole := vector(t, want, prefix+"kv_b_proj.weight", heads*(nope+values)*lora)
	k, v := vector(t, got, prefix+"embed_q.weight", heads*lora*nope), vector(t, got, prefix+"unembed_out.weight", heads*values*lora)
	for h := range heads {
		for r := range lora {
			for n := range nope + values {
				have := float32(0)
				if n < nope {
					have = k[(h*lora+r)*nope+n]
				} else {
					have = v[(h*values+n-nope)*lora+r]
				}
				if w := whole[(h*(nope+values)+n)*lora+r]; have != w {
					t.Fatalf("%s: row %d of head %d at %d is %v, want %v", prefix, n, h, r, have, w)
				}
			}
		}
	}
}

func sameExperts(t *testing.T, got, want *pack) {
	t.Helper()
	a, b := got.layout(), want.layout()
	for _, layer := range want.x.Layers() {
		for e := range want.cfg.NumExperts {
			x, y := got.record(layer, e), want.record(layer, e)
			for i, p := range [][2]model.ExpertPart{{a.Gate, b.Gate}, {a.Up, b.Up}, {a.Down, b.Down}} {
				w, s, c := parts(x, p[0])
				one := unpack(p[0].Format, p[0].Rows, p[0].Cols, w, s, c)
				w, s, c = parts(y, p[1])
				if !slices.Equal(one, unpack(p[1].Format, p[1].Rows, p[1].Cols, w, s, c)) {
					t.Errorf("layer %d expert %d: projection %d differs", layer, e, i)
				}
			}
		}
	}
}

// checkReference compares the logits in float64 with those of the reference implementation. The
// file of deepseek_v3 differs in a temperature, so it is compared with its own configuration on
// the checkpoint's weights.
func checkReference(t *testing.T, name, dir string) {
	t.Helper()
	m, err := refmodel.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ids, _ := fixtures.Reference(t, name).I32("p9.ids")
	got := m.Forward(ids)
	if name == fixtures.DeepseekV3BF16 {
		overlay := fixtures.Overlay(t, fixtures.Packed(t, name, 0), map[string]string{"config.json": string(readFile(t, filepath.Join(dir, "config.json")))})
		other, err := refmodel.Open(overlay)
		if err != nil {
			t.Fatal(err)
		}
		if logits, hidden := got.MaxDiff(other.Forward(ids)); logits > 1e-9 || hidden > 1e-9 {
			t.Errorf("logits differ by %g, hidden states by %g", logits, hidden)
		}
		return
	}
	logits, shape := fixtures.Reference(t, name).F32("p9.logits")
	for i, x := range logits {
		if d := math.Abs(got.Logits[i/shape[1]][i%shape[1]] - float64(x)); !(d <= fixtures.Tolerance(name)) {
			t.Fatalf("logit %d of position %d differs by %g", i%shape[1], i/shape[1], d)
		}
	}
}

// Matrices of a file are quantised like those of a checkpoint.
func TestConvertGGUFBits(t *testing.T) {
	dir := mustConvert(t, fixtures.GGUF(t, fixtures.Qwen35MoEBF16), convert.Options{Bits: 4})
	got, want := openPack(t, dir), openPack(t, fixtures.Packed(t, fixtures.Qwen35MoEBF16, 4))
	for _, tensor := range want.w.Names() {
		g, w := got.w.Manifest().Tensors[tensor], want.w.Manifest().Tensors[tensor]
		if w.Bits == 0 && !strings.HasSuffix(tensor, ".scales") && !strings.HasSuffix(tensor, ".biases") {
			continue
		}
		sameBytes(t, tensor, got.w.Mapping()[g.Offset:][:g.Size], want.w.Mapping()[w.Offset:][:w.Size])
	}
	for _, layer := range want.x.Layers() {
		sameBytes(t, "expert", got.record(layer, 3), want.record(layer, 3))
	}
}

// Text files come with the model, and a tokenizer that is not known is said.
func TestConvertGGUFText(t *testing.T) {
	dir := mustConvert(t, fixtures.GGUF(t, fixtures.Qwen35MoEBF16), convert.Options{})
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json", "vocab.bin"} {
		if len(readFile(t, filepath.Join(dir, name))) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
	if text, ok := weights.TextDir(dir); !ok || text != dir {
		t.Errorf("text is in %q, %v", text, ok)
	}
	var warned string
	dst := filepath.Join(t.TempDir(), "pack")
	o := unsafely(convert.Options{Progress: func(p convert.Progress) { warned += p.Warning }})
	if err := convert.Convert(context.Background(), fixtures.GGUF(t, fixtures.MiniMaxM2BF16), dst, o); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(warned, "tokenizer.ggml.tokens is missing") {
		t.Errorf("warnings %q", warned)
	}
	if _, err := os.Stat(filepath.Join(dst, "tokenizer.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("tokenizer.json: %v", err)
	}
}

// changed returns a copy of a fixture's file in which a text was replaced by one of its length.
func changed(t *testing.T, name, old, now string) string {
	t.Helper()
	raw := string(readFile(t, fixtures.GGUF(t, name)))
	if !strings.Contains(raw, old) || len(old) != len(now) {
		t.Fatalf("%q becomes %q", old, now)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(raw, old, now)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A file that does not hold what its family needs is refused under the names of the file.
func TestConvertGGUFRefuses(t *testing.T) {
	for _, c := range []struct{ name, old, now, want string }{
		{fixtures.Qwen3NextBF16, "blk.1.ssm_a", "blk.9.ssm_a", `"model.layers.1.self_attn.q_proj.weight": found missing`}, // taken for full attention
		{fixtures.Qwen3NextBF16, "blk.0.ffn_up_exps", "blk.7.ffn_up_exps", `"model.layers.0.mlp.switch_mlp.up_proj.weight": found missing`},
		{fixtures.MiniMaxM2BF16, "blk.0.exp_probs_b.bias", "blk.0.attn_output.bias", "blk.0.attn_output.bias"},
		{fixtures.MiniMaxM2BF16, "expert_count\x04\x00\x00\x00\x05", "expert_count\x04\x00\x00\x00\x06", `"blk.0.ffn_gate_inp.weight": found F32 [5 64], expected [6 64]`},
	} {
		dst := filepath.Join(t.TempDir(), "pack")
		err := convert.Convert(context.Background(), changed(t, c.name, c.old, c.now), dst, unsafely(convert.Options{}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.now, err, c.want)
		}
		if _, err := os.Stat(dst); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: something was written", c.now)
		}
	}
}
