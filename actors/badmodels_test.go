package actors_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// copyModel copies a packed model so that a test may damage it.
func copyModel(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	if err := os.CopyFS(dir, os.DirFS(fixtures.Packed(t, name, 0))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestNaNInRouter damages a router weight: the step fails with where the score stood, and the
// sequence is poisoned.
func TestNaNInRouter(t *testing.T) {
	dir := copyModel(t, fixtures.Qwen35MoEBF16)
	w, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := w.Matrix("model.layers.2.mlp.gate", 8, 64)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "model_weights.bin"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	// a bf16 NaN in expert 5's row
	_, err = f.WriteAt([]byte{0xC0, 0x7F}, int64(m.WeightOffset+5*64*2))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	for resident, finder := range map[actors.Resident]stages.StageID{actors.ResidentOff: stages.Router, actors.ResidentOn: stages.Dispatch} {
		t.Run("resident="+string(resident), func(t *testing.T) {
			e := open(t, actors.Config{Model: dir, Resident: resident})
			s := sequence(t, e)
			_, err := s.Eval(context.Background(), []int32{1, 2})
			var score *stages.ScoreError
			var step *stages.StepError
			if !errors.As(err, &score) || !errors.As(err, &step) || score.Expert != 5 || step.Layer != 2 || step.Stage != finder {
				t.Errorf("error %v, want a ScoreError of expert 5 in layer 2, found by %v", err, finder)
			}
			if s.Err() == nil {
				t.Error("the sequence is not poisoned")
			}
		})
	}
}

// TestBadModels opens directories that are no model, or a damaged one. Each says what is wrong, and
// nothing is left open.
func TestBadModels(t *testing.T) {
	layer := filepath.Join("packed_experts", "layer_01.bin")
	for _, tc := range []struct {
		name   string
		damage func(dir string) error
		verify bool
		want   func(error) bool
	}{
		{"no directory", os.RemoveAll, false, func(err error) bool { return errors.Is(err, fs.ErrNotExist) }},
		{"no config anywhere", func(d string) error {
			return errors.Join(os.Remove(filepath.Join(d, "config.json")), edit("model_weights.json", `"config":`, `"konfig":`)(d))
		}, false, is[*weights.NoConfigError]},
		{"config without a field", edit("config.json", `"num_experts": 8,`, ``), false, is[*model.ConfigError]},
		{"config with an impossible field", edit("config.json", `"num_experts_per_tok": 2`, `"num_experts_per_tok": 99`), false, is[*model.ConfigError]},
		{"unknown architecture", edit("config.json", `qwen3_5_moe`, `qwen9_moe`), false, is[*model.UnknownArchError]},
		{"no weights", func(d string) error { return os.Remove(filepath.Join(d, "model_weights.bin")) }, false,
			func(err error) bool { return errors.Is(err, fs.ErrNotExist) }},
		{"weights cut", func(d string) error { return os.Truncate(filepath.Join(d, "model_weights.bin"), 1000) }, false, is[*weights.ManifestError]},
		{"config of another size", edit("config.json", `"hidden_size": 64`, `"hidden_size": 128`), false, func(err error) bool { return err != nil }},
		{"expert file missing", func(d string) error { return os.Remove(filepath.Join(d, layer)) }, false, is[*expertfile.MissingError]},
		{"expert file short by a byte", func(d string) error { return shorten(filepath.Join(d, layer)) }, false, is[*expertfile.SizeError]},
		{"expert file changed", func(d string) error { return flip(filepath.Join(d, layer)) }, true, is[*convert.ChecksumError]},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := copyModel(t, fixtures.Qwen35MoEBF16)
			if err := tc.damage(dir); err != nil {
				t.Fatal(err)
			}
			dev := device(t, 1)
			before := mappings(t)
			e, err := actors.Open(context.Background(), actors.Config{Model: dir, Device: dev, Verify: tc.verify})
			if err == nil {
				e.Close(context.Background())
				t.Fatal("the model opens")
			}
			if !tc.want(err) {
				t.Errorf("error of type %T: %v", err, err)
			}
			if after := mappings(t); after != before {
				t.Errorf("%s left, %s before", after, before)
			}
			goleak.VerifyNone(t, goleak.IgnoreCurrent())
			t.Log(err)
		})
	}
}

// is reports whether err is or wraps a T.
func is[T error](err error) bool {
	var t T
	return errors.As(err, &t)
}

func edit(name, old, new string) func(string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !strings.Contains(string(raw), old) {
			return fmt.Errorf("%s does not contain %q", name, old)
		}
		return os.WriteFile(path, []byte(strings.ReplaceAll(string(raw), old, new)), 0o644)
	}
}

func shorten(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, info.Size()-1)
}

func flip(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	raw[len(raw)/2] ^= 1
	return os.WriteFile(path, raw, 0o644)
}

// TestImpossibleSettings opens a good model with settings that cannot be.
func TestImpossibleSettings(t *testing.T) {
	dir, dev := fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), device(t, 1)
	for _, tc := range []struct {
		cfg  actors.Config
		want string
	}{
		{actors.Config{}, "Config.Device is nil"},
		{actors.Config{Device: dev}, "Config.Model is empty"},
		{actors.Config{Model: dir, Device: dev, RingDepth: -1, ReadWorkers: -1}, "Config.ReadWorkers is -1"},
		{actors.Config{Model: dir, Device: dev, Prefetch: "guess"}, `Config.Prefetch is "guess", but must be off`},
		{actors.Config{Model: dir, Device: dev, PrefetchLayers: 3}, `Config.PrefetchLayers is 3, but must be 1 or 2`},
		{actors.Config{Model: dir, Device: dev, ExpertIO: "tape"}, `Config.ExpertIO is "tape"`},
		{
			actors.Config{Model: dir, Device: dev, ExpertIO: actors.ExpertIOLoaded, Partial: true},
			"leave both to auto",
		},
		{
			actors.Config{Model: dir, Device: dev, ExpertIO: actors.ExpertIODirect, Resident: actors.ResidentOn},
			"or set mmap or loaded",
		},
		{actors.Config{Model: dir, Device: dev, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 100}, "raise Config.ExpertMemory"},
		{actors.Config{Model: dir, Device: dev, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 1 << 17, WaveSlots: 8}, "raise Config.ExpertMemory"},
		{actors.Config{Model: dir, Device: dev, Context: 1 << 30}, "or set Config.ContextBeyond"},
		{actors.Config{Model: dir, Device: dev, Context: 4096, StateMemory: 1 << 16}, "lower Config.Context"},
		{actors.Config{Model: dir, Device: dev, ExpertsPerToken: 3}, "trained with 2"},
	} {
		e, err := actors.Open(context.Background(), tc.cfg)
		if err == nil {
			e.Close(context.Background())
			t.Errorf("%+v opens", tc.cfg)
		} else if !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %q does not say %q", err, tc.want)
		}
	}
}
