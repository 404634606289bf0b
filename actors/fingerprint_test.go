package actors_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/snapshot"
)

// A state of an earlier version loads as long as its model's directory is what it was. One that is
// saved now loads whatever is put beside the model.
func TestFormerFingerprint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	if err := os.CopyFS(dir, os.DirFS(fixtures.Packed(t, fixtures.Qwen3MoEBF16, 0))); err != nil {
		t.Fatal(err)
	}
	cfg := actors.Config{Model: dir, Device: device(t, 1)}
	earlier := open(t, cfg)
	actors.SealAsFormer(earlier)
	before := sequence(t, earlier)
	eval(t, before, 1, 2, 3)
	former := save(t, before, actors.SaveOptions{})
	want := eval(t, before, 4)

	now := sequence(t, open(t, cfg))
	if err := load(now, former, actors.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	again := save(t, now, actors.SaveOptions{})
	if !slices.Equal(eval(t, now, 4), want) {
		t.Error("a state of an earlier version continues to other bits")
	}

	if err := os.WriteFile(filepath.Join(dir, "NOTES.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := open(t, cfg)
	noted := sequence(t, e)
	err := load(noted, former, actors.LoadOptions{})
	refused, ok := errors.AsType[*actors.FormerRuleError](err)
	if !ok || refused.Dir != dir || !errors.Is(err, snapshot.ErrFingerprint) {
		t.Errorf("a state of an earlier version, with notes beside the model: %v", err)
	}
	if err := load(noted, former, actors.LoadOptions{AnyModel: true}); err != nil {
		t.Errorf("of any model: %v", err)
	}
	if err := load(noted, again, actors.LoadOptions{}); err != nil {
		t.Errorf("saved since: %v", err)
	}
	if !slices.Equal(eval(t, noted, 4), want) {
		t.Error("it continues to other bits")
	}

	other := sequence(t, open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen3MoEQ4, 0), Device: device(t, 1)}))
	eval(t, other, 1)
	foreign := save(t, other, actors.SaveOptions{})
	if err := load(noted, foreign, actors.LoadOptions{}); !errors.Is(err, snapshot.ErrFingerprint) || errors.As(err, new(*actors.FormerRuleError)) {
		t.Errorf("a state of another model: %v", err)
	}
	a, errA := e.Fingerprint(context.Background())
	b, errB := e.FormerFingerprint(context.Background())
	if errA != nil || errB != nil || a == b {
		t.Errorf("fingerprints %v and %v, %v, %v", a, b, errA, errB)
	}
}
