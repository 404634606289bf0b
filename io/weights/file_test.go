package weights_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/mapfault"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

func config(t *testing.T, dir string) *model.Config {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := model.ParseConfig(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// Matrices and vectors of a converted checkpoint equal the checkpoint's, in panels.
func TestOpenPacked(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	cfg := config(t, dir)
	f, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Check(cfg); err != nil {
		t.Errorf("Check: %v", err)
	}
	src, err := safetensors.Open(filepath.Join(fixtures.Dir(t, fixtures.Qwen35MoEQ4), "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for _, c := range []struct {
		name       string
		rows, cols int
		format     string
	}{
		{"lm_head", cfg.VocabSize, cfg.HiddenSize, "q4g64p"},
		{"model.layers.0.linear_attn.in_proj_qkv", cfg.LinearConvDim(), cfg.HiddenSize, "q4g64p"},
		{"model.layers.3.self_attn.q_proj", 2 * cfg.NumAttentionHeads * cfg.HeadDim, cfg.HiddenSize, "q4g64p"},
		{"model.layers.7.mlp.gate", cfg.NumExperts, cfg.HiddenSize, "q8g64p"},
	} {
		m, err := f.Matrix(c.name, c.rows, c.cols)
		if err != nil {
			t.Errorf("Matrix: %v", err)
			continue
		}
		if m.Format.String() != c.format || m.Rows != c.rows || m.Cols != c.cols {
			t.Errorf("%s: got %+v, want %s", c.name, m, c.format)
		}
		for part, at := range map[quant.Part]int{quant.Weight: m.WeightOffset, quant.Scales: m.ScalesOffset, quant.Biases: m.BiasesOffset} {
			rows, ok := src.Tensor("language_model." + c.name + "." + part.String())
			if !ok {
				t.Fatalf("the source has no %s.%s", c.name, part)
			}
			want := make([]byte, len(rows.Data))
			m.Format.ToPanels(part, want, rows.Data, c.rows, c.cols)
			if !bytes.Equal(f.Mapping()[at:at+len(want)], want) {
				t.Errorf("%s.%s differs from the source in panels", c.name, part)
			}
			if at%64 != 0 {
				t.Errorf("%s.%s begins at %d, no multiple of 64", c.name, part, at)
			}
		}
	}
	for name, n := range map[string]int{"model.norm.weight": cfg.HiddenSize, "model.layers.0.linear_attn.conv1d.weight": cfg.LinearConvDim() * 4,
		"model.layers.0.linear_attn.A_log": cfg.LinearNumValueHeads, "model.layers.1.linear_attn.dt_bias": cfg.LinearNumValueHeads} {
		got, err := f.Vector(name, n)
		if err != nil {
			t.Errorf("Vector: %v", err)
			continue
		}
		x, _ := src.Tensor("language_model." + name)
		want := make([]float32, n)
		if err := x.Floats(want, 0); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Errorf("%s[%d]: got %v, want %v", name, i, got[i], want[i])
				break
			}
		}
	}
	if !f.Has("lm_head.weight") || f.Has("lm_head") || f.Has("model.layers.0.mlp.switch_mlp.gate_proj.weight") || len(f.Names()) < 100 {
		t.Errorf("Has or Names is wrong: %d names", len(f.Names()))
	}
}

// The weights of one model are not accepted for another.
func TestCheckOtherModel(t *testing.T) {
	f, err := weights.Open(fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = f.Check(config(t, fixtures.Dir(t, fixtures.Qwen35MoEBF16)))
	var bad *weights.ManifestError
	if !errors.As(err, &bad) {
		t.Errorf("got %v, want a *ManifestError", err)
	}
}

func TestOpenMissingAndShort(t *testing.T) {
	packed := fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0)
	manifest, err := os.ReadFile(filepath.Join(packed, weights.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(packed, weights.DataName))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := weights.Open(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no manifest: got %v", err)
	}
	write(weights.ManifestName, manifest)
	if _, err := weights.Open(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no data: got %v", err)
	}
	var bad *weights.ManifestError
	write(weights.DataName, nil)
	if _, err := weights.Open(dir); !errors.As(err, &bad) {
		t.Errorf("empty data: got %v", err)
	}
	write(weights.DataName, data[:len(data)-1])
	if _, err := weights.Open(dir); !errors.As(err, &bad) {
		t.Errorf("data short by one byte: got %v", err)
	}
	write(weights.DataName, data)
	f, err := weights.Open(dir)
	if err != nil {
		t.Fatalf("whole: %v", err)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// TestTruncatedWhileOpen reads a vector from a file that was truncated after it was opened.
func TestTruncatedWhileOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	if err := os.CopyFS(dir, os.DirFS(fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0))); err != nil {
		t.Fatal(err)
	}
	f, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(f.Path(), 0); err != nil {
		t.Fatal(err)
	}
	_, err = f.Vector("model.norm.weight", config(t, dir).HiddenSize)
	if lost := (*mapfault.FileError)(nil); !errors.As(err, &lost) || lost.Path != f.Path() {
		t.Errorf("a vector of a truncated file: %v, want a *mapfault.FileError", err)
	}
}
