package ggufinfo

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/model"
)

// moe is a model that a script writes for the reader's tests: its README tells how.
const (
	moe      = "../../io/gguf/testdata/moe-v2.gguf"
	moePart2 = "../../io/gguf/testdata/moe-00002-of-00003.gguf"
)

// The numbers below are those of make_gguf.py, and of the bytes of its types: rows of 64 take 68
// bytes as Q8_0 and 36 as Q4_0, rows of 32 take 18 as Q4_0 and 22 as Q5_0.
func TestRead(t *testing.T) {
	const (
		embedding = 4 * 68
		norms     = 64 * 4
		mixer     = norms + (64+32+32+64)*68 + 2*16*4
		router    = norms + 3*64*4
		expert0   = 2*32*36 + 64*18
		expert1   = 2*32*36 + 64*22
		resident  = embedding + norms + 2*(mixer+router)
	)
	file, err := os.Stat(moe)
	if err != nil {
		t.Fatal(err)
	}
	want := Info{
		File: moe, Format: Format{Version: 2, Parts: 1, Bytes: file.Size()}, Name: "Tiny MoE", Arch: model.Qwen3MoE, Called: "qwen3moe",
		Shape: figures.Shape{
			Layers: 2, FullLayers: 2, Hidden: 64, Heads: 4, KVHeads: 2, HeadDim: 16, Experts: 3, ExpertsPerToken: 2, ExpertWidth: 32,
			Vocab: 4, Context: 4096, TiedEmbeddings: true, ExpertFormats: "Q4_0, Q4_0, Q4_0 or Q5_0",
		},
		Bytes: figures.Weights{
			Resident: resident, Streamed: 3 * (expert0 + expert1), Expert: expert1,
			TouchedToken: resident + 2*(expert0+expert1), TouchedDense: resident, TouchedExp: 2 * (expert0 + expert1),
		},
		Tensors: []TypeBytes{
			{"Q8_0", 9, embedding + 2*192*68, true},
			{"Q4_0", 5, 3 * (4*32*36 + 64*18), true},
			{"Q5_0", 1, 3 * 64 * 22, true},
			{"F32", 11, 5*norms + 4*16*4 + 2*3*64*4, true},
		},
		Text: Text{Tokenizer: "gpt2", Splitter: "qwen2", Tokens: 4, Template: true},
		Missing: []string{
			`"qwen3moe.attention.layer_norm_rms_epsilon": the key is missing`,
			`"qwen3moe.rope.freq_base": the key is missing`,
		},
	}
	got, err := Read(moe)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}
	parts, err := Read(moePart2)
	if err != nil {
		t.Fatal(err)
	}
	if parts.Format.Parts != 3 || parts.Format.Version != 3 {
		t.Errorf("parts: %+v", parts.Format)
	}
	parts.File, parts.Format = want.File, want.Format
	if !reflect.DeepEqual(*parts, want) {
		t.Errorf("in parts %+v\nwant     %+v", *parts, want)
	}
	text := got.String()
	for _, s := range []string{
		`"Tiny MoE"`, `"qwen3moe", which is qwen3_moe here`, "2: 2 full attention", "3 a layer, 2 per token, width 32, stored as Q4_0, Q4_0, Q4_0 or Q5_0",
		"Q8_0    25.8 KiB in 9 tensors", `would not run: "qwen3moe.attention.layer_norm_rms_epsilon": the key is missing`, `4 tokens of tokenizer "gpt2", split by "qwen2"; a chat template`,
	} {
		if !strings.Contains(text, s) {
			t.Errorf("no %q in\n%s", s, text)
		}
	}
}

// replaced writes a model with some of its bytes changed.
func replaced(t *testing.T, pairs ...string) string {
	t.Helper()
	raw, err := os.ReadFile(moe)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		if len(pairs[i]) != len(pairs[i+1]) || !bytes.Contains(raw, []byte(pairs[i])) {
			t.Fatalf("%q cannot become %q", pairs[i], pairs[i+1])
		}
		raw = bytes.ReplaceAll(raw, []byte(pairs[i]), []byte(pairs[i+1]))
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// What stands between a file and a run is said of each thing.
func TestMissing(t *testing.T) {
	for name, c := range map[string]struct {
		pairs []string
		want  string
	}{
		"architecture":    {[]string{"qwen3moe", "qwen9moe"}, `its architecture "qwen9moe" is of no family that the engine has: deepseek_v3, deepseek_v32, glm4_moe`},
		"no architecture": {[]string{"general.architecture", "general.architectura"}, "it has no general.architecture"},
		"experts":         {[]string{"qwen3moe.expert_count", "qwen3moe.expert_kount"}, `"qwen3moe.expert_count" is missing or 0`},
		"no experts":      {[]string{"_exps.weight", "_exxx.weight"}, "it has no tensors of experts"},
		"layers":          {[]string{"blk.1.", "blk_1."}, `"qwen3moe.block_count" tells of 2 layers, but there are tensors of 1`},
		"rule of text":    {[]string{"qwen2", "qwen9"}, `its text is not read: tokenizer: tokenizer.ggml.pre = "qwen9" (known: chatglm-bpe, deepseek-v3, `},
		"tokens":          {[]string{"ggml.tokens", "ggml.takens"}, "it has no tokens"},
		// ffn_down_exps of layer 1, [3, 64, 32] as Q5_0, becomes [2, 64, 24] in signed bytes
		"type": {[]string{
			"\x03\x00\x00\x00\x20\x00\x00\x00\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00",
			"\x03\x00\x00\x00\x18\x00\x00\x00\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x18\x00\x00\x00",
		}, "1 tensor stored as I8, of which the program knows the size alone"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Read(replaced(t, c.pairs...))
			if err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(r.Missing, "\n"); !strings.Contains(all, c.want) || strings.Contains(r.String(), "runs as it is") || !strings.Contains(r.String(), c.want) {
				t.Errorf("no %q in\n%s", c.want, all)
			}
		})
	}
}

// Layers of all kinds, shared experts, draft layers, a head of its own: sizes are those of
// make_gguf.py, in which rows of 32 take 34 bytes as Q8_0, 17 as MXFP4 and 20 as Q4_1.
func TestKinds(t *testing.T) {
	const (
		latent   = 16*32*2 + 32*34
		expert   = 32*17 + 32*16*4
		head     = 8 * 34
		resident = 8*32*2 + head + 2*latent + 64*34 + 32*34
		touched  = resident - 7*32*2
		drafts   = latent + 2*expert + 32*34 + 32*64*4
		linear   = 64*34 + 2*4 + 64*4*4
		rest     = 8*32*2 + linear + (64+16)*34
		expert2  = 3 * 32 * 20
	)
	for file, want := range map[string]Info{
		"deepseek.gguf": {Arch: model.DeepseekV3, Unused: drafts,
			Shape: figures.Shape{Layers: 2, LatentLayers: 2, DenseLayers: 1, Hidden: 32, Heads: 2, KVHeads: 2, HeadDim: 24, Experts: 2,
				ExpertsPerToken: 1, ExpertWidth: 16, SharedWidth: 32, Vocab: 8, Context: 8192, ExpertFormats: "MXFP4, MXFP4, F32"},
			Bytes: figures.Weights{Resident: resident, Streamed: 2 * expert, Expert: expert, TouchedToken: touched + expert, TouchedDense: touched, TouchedExp: expert}},
		"qwen3next.gguf": {Arch: model.Qwen3Next,
			Shape: figures.Shape{Layers: 2, LinearLayers: 1, FullLayers: 1, Hidden: 32, Heads: 4, KVHeads: 2, HeadDim: 8, Experts: 2,
				ExpertsPerToken: 2, ExpertWidth: 32, SharedWidth: 64, Vocab: 8, TiedEmbeddings: true, ExpertFormats: "Q4_1, Q4_1, Q4_1"},
			Bytes: figures.Weights{Resident: rest, Streamed: 4 * expert2, Expert: expert2, TouchedToken: rest + 4*expert2, TouchedDense: rest, TouchedExp: 4 * expert2}},
	} {
		r, err := Read("../../io/gguf/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if r.Arch != want.Arch || r.Shape != want.Shape || r.Bytes != want.Bytes || r.Unused != want.Unused {
			t.Errorf("%s:\ngot  %s %+v %+v, %d unused\nwant %s %+v %+v, %d", file, r.Arch, r.Shape, r.Bytes, r.Unused, want.Arch, want.Shape, want.Bytes, want.Unused)
		}
		// These two have no tokens.
		all := strings.Join(r.Missing, "\n")
		if !strings.Contains(all, "no tokens") || strings.Contains(all, "stored as") {
			t.Errorf("%s: missing %q", file, r.Missing)
		}
		if has := strings.Contains(r.String(), "of draft layers"); has != (r.Unused > 0) {
			t.Errorf("%s: %d bytes unused in\n%s", file, r.Unused, r)
		}
	}
}

// A file that nothing stands in the way of runs.
func TestRuns(t *testing.T) {
	for file, want := range map[string]string{"qwen35moe.gguf": "", "exact.gguf": "no tokens", "rounded.gguf": "no tokens"} {
		r, err := Read("../fixtures/testdata/gguf/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if runs := strings.Contains(r.String(), "runs as it is: experts are read from the file"); runs != (want == "") || runs != (len(r.Missing) == 0) {
			t.Errorf("%s: %q in\n%s", file, r.Missing, r)
		}
		if !strings.Contains(strings.Join(r.Missing, "\n"), want) {
			t.Errorf("%s: no %q in %q", file, want, r.Missing)
		}
	}
}

// What is no GGUF file, or none that can be read, is an error.
func TestReadErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.gguf")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); !errors.Is(err, gguf.ErrNotGGUF) {
		t.Errorf("text under the name of a GGUF file: %v", err)
	}
}

func TestLayerOf(t *testing.T) {
	for tensor, want := range map[string]string{
		"blk.0.attn_q.weight": "0 attn_q", "blk.17.ssm_a": "17 ssm_a", "output.weight": "", "blk.x.attn_q": "", "blk.-1.a": "", "blk.3": "",
		"blk.99999999999999999999.a": "",
	} {
		n, name, ok := layerOf(tensor)
		if got := map[bool]string{true: fmt.Sprint(n, " ", name)}[ok]; got != want {
			t.Errorf("%s: got %q, want %q", tensor, got, want)
		}
	}
}

// Tensors do not tell which layers have a window, nor the heads of the others where layers differ.
func TestWindows(t *testing.T) {
	for name, want := range map[string]figures.Shape{
		fixtures.GptOssMXFP4: {FullLayers: 1, WindowLayers: 1, Heads: 4, KVHeads: 1},
		fixtures.Step35BF16:  {FullLayers: 2, WindowLayers: 1, Heads: 4, KVHeads: 2},
		fixtures.HyV3BF16:    {FullLayers: 2, Heads: 4, KVHeads: 2},
	} {
		r, err := Read(fixtures.GGUF(t, name))
		if err != nil {
			t.Fatal(err)
		}
		s := r.Shape
		if got := (figures.Shape{FullLayers: s.FullLayers, WindowLayers: s.WindowLayers, Heads: s.Heads, KVHeads: s.KVHeads}); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}
