package weights_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
)

// Directories that other programs packed are read as the same model: the configuration comes from
// the manifest, matrices have no bits. (io/expertfile tests the experts.)
func TestLegacy(t *testing.T) {
	for _, name := range []string{fixtures.Qwen35MoEQ4, fixtures.DeepseekV3Q4KVB} {
		for _, moeflux := range []bool{false, true} {
			dir := fixtures.Legacy(t, name, moeflux)
			got, err := weights.ReadConfig(dir)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want := *config(t, fixtures.Dir(t, name))
			// What such a manifest does not say.
			want.EOSTokenIDs, want.BOSTokenID = nil, -1
			if want.Arch == model.Qwen35MoE {
				want.MaxPositionEmbeddings = 262144
			}
			if !reflect.DeepEqual(got, &want) {
				t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, &want)
			}
			f, err := weights.Open(dir)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := f.Check(got); err != nil {
				t.Errorf("%s: Check: %v", name, err)
			}
			compareWeights(t, name, f, got)
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if d, ok := weights.TextDir(dir); ok {
				t.Errorf("%s: a tokenizer in %s", name, d)
			}
		}
	}
}

// compareWeights compares every matrix and vector with those of the checkpoint as this project
// packs it.
func compareWeights(t *testing.T, name string, f *weights.File, cfg *model.Config) {
	t.Helper()
	own, err := weights.Open(fixtures.PackedRows(t, name, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if !reflect.DeepEqual(f.Names(), own.Names()) {
		t.Errorf("%s: names %v, want %v", name, f.Names(), own.Names())
	}
	h := cfg.HiddenSize
	sizes := map[string][2]int{"model.embed_tokens": {cfg.VocabSize, h}, "lm_head": {cfg.VocabSize, h}, "model.layers.1.mlp.gate": {cfg.NumExperts, h}}
	if cfg.KVLoraRank > 0 {
		sizes["model.layers.1.self_attn.kv_b_proj"] = [2]int{cfg.NumAttentionHeads * (cfg.QKNopeHeadDim + cfg.VHeadDim), cfg.KVLoraRank}
	} else {
		sizes["model.layers.0.linear_attn.in_proj_qkv"] = [2]int{cfg.LinearConvDim(), h}
	}
	for matrix, s := range sizes {
		a, errA := f.Matrix(matrix, s[0], s[1])
		b, errB := own.Matrix(matrix, s[0], s[1])
		if errA != nil || errB != nil || a.Format != b.Format {
			t.Errorf("%s: %s: %v, %v; formats %v and %v", name, matrix, errA, errB, a.Format, b.Format)
			continue
		}
		n := a.Format.WeightBytes(s[0], s[1])
		if !bytes.Equal(f.Mapping()[a.WeightOffset:][:n], own.Mapping()[b.WeightOffset:][:n]) {
			t.Errorf("%s: %s differs", name, matrix)
		}
	}
	for vector, n := range map[string]int{"model.norm.weight": h, "model.layers.1.input_layernorm.weight": h} {
		a, errA := f.Vector(vector, n)
		b, errB := own.Vector(vector, n)
		if errA != nil || errB != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %s: %v, %v: %v, want %v", name, vector, errA, errB, a, b)
		}
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// config.json takes precedence over the manifest. It is found beside the weights or where moeflux
// keeps the checkpoint.
func TestReadConfigPlaces(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(fixtures.Dir(t, fixtures.Qwen35MoEQ4), "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, below := range []string{".", "mlx"} {
		dir := fixtures.Legacy(t, fixtures.Qwen35MoEQ4, below == "mlx")
		put(t, filepath.Join(dir, below, "config.json"), string(raw))
		put(t, filepath.Join(dir, below, "generation_config.json"), `{"eos_token_id": [3]}`)
		put(t, filepath.Join(dir, below, "tokenizer.json"), "{}")
		cfg, err := weights.ReadConfig(dir)
		if err != nil || cfg.MaxPositionEmbeddings != 4096 || !reflect.DeepEqual(cfg.EOSTokenIDs, []int32{3, 511}) {
			t.Errorf("%s: got %+v, %v", below, cfg, err)
		}
		if text, ok := weights.TextDir(dir); !ok || text != filepath.Join(dir, below) {
			t.Errorf("%s: the tokenizer is in %s, %v", below, text, ok)
		}
		name := "tokenizer.json"
		for _, next := range []string{"tiktoken.model", "hy.tiktoken"} {
			if err := os.Rename(filepath.Join(dir, below, name), filepath.Join(dir, below, next)); err != nil {
				t.Fatal(err)
			}
			name = next
			if text, ok := weights.TextDir(dir); !ok || text != filepath.Join(dir, below) {
				t.Errorf("%s: the %s is in %s, %v", below, name, text, ok)
			}
		}
	}
	// The packs of this project say all of it in the manifest too.
	for _, name := range fixtures.All() {
		packed := fixtures.Packed(t, name, 0)
		dir := t.TempDir()
		manifest, err := os.ReadFile(filepath.Join(packed, weights.ManifestName))
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, weights.ManifestName), string(manifest))
		got, err := weights.ReadConfig(dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := *config(t, packed)
		if want.Arch == model.Qwen35MoE {
			want.MaxPositionEmbeddings, want.EOSTokenIDs = 262144, nil
		}
		if !reflect.DeepEqual(got, &want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, &want)
		}
	}
}

func TestReadConfigRefuses(t *testing.T) {
	var none *weights.NoConfigError
	if _, err := weights.ReadConfig(t.TempDir()); !errors.As(err, &none) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty directory: got %v, want a *NoConfigError", err)
	}
	for content, parts := range map[string][]string{
		`{"tensors":{}}`:               {weights.ManifestName, "config"},
		`{"tensors":{},"config":null}`: {weights.ManifestName, "config"},
		`{"config":{}}`:                {weights.ManifestName, "config.model_type"},
		`{"config":[]}`:                {weights.ManifestName, "config"},
		`{`:                            {weights.ManifestName, "JSON"},
		`{"config":{"linear_num_value_heads":4}}`:                     {weights.ManifestName, "config.hidden_size", "config.layer_types"},
		`{"config":{"kv_lora_rank":4,"rope_scaling":{"factor":"x"}}}`: {weights.ManifestName, "config.max_position_embeddings", "config.q"},
		`{"config":{"model_type":"deepseek_v4"}}`:                     {weights.ManifestName, "deepseek_v4", "supported: deepseek_v3, deepseek_v32, glm4_moe"},
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, weights.ManifestName), content)
		_, err := weights.ReadConfig(dir)
		for _, part := range parts {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, want %q in it", content, err, part)
			}
		}
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "config.json"), `{"model_type":"llama"}`)
	var unknown *model.UnknownArchError
	if _, err := weights.ReadConfig(dir); !errors.As(err, &unknown) || unknown.ModelType != "llama" || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want an *UnknownArchError that names the directory", err)
	}
}

// The published vocabularies say which ids end a text.
func TestReadConfigStopTokens(t *testing.T) {
	for name, want := range map[string]struct {
		vocab int
		eos   []int32
		bos   int32
	}{
		fixtures.Qwen35MoEQ4:     {248320, []int32{248044, 248046}, -1},
		fixtures.DeepseekV3Q4KVB: {128815, []int32{1}, 0},
	} {
		dir := fixtures.Legacy(t, name, false)
		path := filepath.Join(dir, weights.ManifestName)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		m["config"].(map[string]any)["vocab_size"] = want.vocab
		if raw, err = json.Marshal(m); err != nil {
			t.Fatal(err)
		}
		put(t, path, string(raw))
		cfg, err := weights.ReadConfig(dir)
		if err != nil || !reflect.DeepEqual(cfg.EOSTokenIDs, want.eos) || cfg.BOSTokenID != want.bos {
			t.Errorf("%s: got %+v, %v, want %v and %d", name, cfg, err, want.eos, want.bos)
		}
	}
}
