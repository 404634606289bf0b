package moeflux

import (
	"errors"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/tuned"
)

// A model takes what tune kept in the cache folder, with the device's threads, unless the options
// say otherwise, and says so.
func TestTuned(t *testing.T) {
	dir, cache := fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), t.TempDir()
	dev, err := host.New(host.Config{Threads: 2, Activations: host.Int8})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	cfg := Config{Model: dir, Device: dev}
	info, err := actors.Plan(cfg)
	if err != nil {
		t.Fatal(err)
	}
	k, err := tuned.New(&cfg, &info, tuned.Settings{RingDepth: 3, Threads: 3}, tuned.Found{})
	if err != nil {
		t.Fatal(err)
	}
	path, err := tuned.Path(cache, &cfg)
	if err := errors.Join(err, k.Save(path)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name           string
		o              Options
		depth, threads int
		tuned          string
	}{
		{"nothing is said", Options{Threads: 0}, 3, 3, "--ring-depth 3 --threads 3"},
		{"auto", Options{Tuned: TunedAuto, Threads: 2}, 3, 2, "--ring-depth 3"},
		{"off", Options{Tuned: TunedOff, Threads: 2}, 2, 2, ""},
		{"all is given", Options{Threads: 2, Config: Config{RingDepth: 1}}, 1, 2, ""},
	} {
		c.o.Device, c.o.CacheDir, c.o.TokensOnly = "host", cache, true
		m, err := Open(t.Context(), dir, c.o)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := Plan(dir, c.o)
		for what, i := range map[string]Info{"Open": m.Info(), "Plan": plan} {
			if err != nil || i.RingDepth != c.depth || i.Threads != c.threads || i.Tuned != c.tuned {
				t.Errorf("%s: %s has depth %d, %d threads, tuned %q, %v; want %d, %d, %q", c.name, what, i.RingDepth, i.Threads, i.Tuned, err, c.depth, c.threads, c.tuned)
			}
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := Open(t.Context(), dir, Options{Tuned: "yes"}); err == nil || !strings.Contains(err.Error(), `Options.Tuned is "yes", but must be auto or off`) {
		t.Errorf("got %v", err)
	}
}
