package expertfile_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
)

// sameRecords compares every expert of two directories.
func sameRecords(t *testing.T, dir, want string, cfg *model.Config) {
	t.Helper()
	a, err := expertfile.Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := expertfile.Open(want, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if a.Layout() != b.Layout() {
		t.Fatalf("layout %+v, want %+v", a.Layout(), b.Layout())
	}
	x, y := make([]byte, a.Layout().Bytes), make([]byte, a.Layout().Bytes)
	for _, layer := range cfg.MoELayers() {
		for e := range cfg.NumExperts {
			if err := errors.Join(a.ReadExpert(layer, e, x), b.ReadExpert(layer, e, y)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(x, y) {
				t.Errorf("layer %d expert %d differs", layer, e)
			}
		}
	}
}

// Experts packed by flash-moe or moeflux, without layout.json, equal those that this project packs.
func TestLegacy(t *testing.T) {
	for _, name := range []string{fixtures.Qwen35MoEQ4, fixtures.DeepseekV3Q4KVB} {
		for _, moeflux := range []bool{false, true} {
			dir := fixtures.Legacy(t, name, moeflux)
			cfg, err := weights.ReadConfig(dir)
			if err != nil {
				t.Fatal(err)
			}
			sameRecords(t, dir, fixtures.PackedRows(t, name, 0), cfg)
		}
	}
}

// Two-bit experts are in their own directory, which is used only if the usual one does not exist.
func TestLegacyTwoBit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pack")
	src := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	if err := convert.Convert(context.Background(), src, dir, convert.Options{ExpertBits: 2, RowOrder: true}); err != nil {
		t.Fatal(err)
	}
	legacy := fixtures.Legacy(t, fixtures.Qwen35MoEQ4, false)
	cfg, err := weights.ReadConfig(legacy)
	if err != nil {
		t.Fatal(err)
	}
	usual, two := filepath.Join(legacy, "packed_experts"), filepath.Join(legacy, "packed_experts_2bit")
	if err := os.CopyFS(two, os.DirFS(filepath.Join(dir, "packed_experts"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(two, expertfile.LayoutName)); err != nil {
		t.Fatal(err)
	}
	sameRecords(t, legacy, fixtures.PackedRows(t, fixtures.Qwen35MoEQ4, 0), cfg)
	if err := os.RemoveAll(usual); err != nil {
		t.Fatal(err)
	}
	f, err := expertfile.Open(legacy, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Layout().Down.Format.String(); got != "q2g64" {
		t.Errorf("down projections are %s, want q2g64", got)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	sameRecords(t, legacy, dir, cfg)
	if err := os.RemoveAll(two); err != nil {
		t.Fatal(err)
	}
	var missing *expertfile.MissingError
	if _, err := expertfile.Open(legacy, cfg); !errors.As(err, &missing) || missing.Path != filepath.Join(usual, "layer_00.bin") {
		t.Errorf("no experts at all: got %v, want a *MissingError of the usual place", err)
	}
}
