package tune

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/bench"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/tuned"
)

// faster is a result that chose settings.
func faster(s tuned.Settings) *Result {
	r := &Result{Command: "the command", Findings: noFindings()}
	r.Tested = &Candidate{Settings: s}
	r.Candidates = []*Candidate{r.Tested}
	r.Verdict = &bench.SweepVerdict{Test: "a test", P: 0.02, Gain: 0.1, Significant: true, Pairs: make([]bench.SweepPair, 6)}
	return r
}

// What was chosen is in the file, with what it is for; what was not takes the file away; and what
// is not certain leaves it.
func TestKeep(t *testing.T) {
	d, err := host.New(host.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	cfg := actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), Device: d}
	path := filepath.Join(t.TempDir(), "tuned", "file.json")
	r := faster(workers)
	if err := r.Keep(path, &cfg, time.Unix(9, 0)); err != nil || !r.Kept.Saved || r.Kept.Removed {
		t.Fatalf("%+v, %v", r.Kept, err)
	}
	k, err := tuned.Load(path)
	if err != nil || k.Settings != workers || k.Found.Pairs != 6 || k.Found.P != 0.02 || k.Found.Gain != 0.1 || k.Found.Test != "a test" || k.Found.At.Unix() != 9 {
		t.Errorf("%+v, %v", k, err)
	}
	if text := r.Text(); !strings.Contains(text, "faster: --read-workers 8 takes 10.0% less time than the defaults, the median of 6 pairs with the same tokens (a test, p = 0.020)\n\n    the command\n\nrun, serve and the library take this") || !strings.Contains(text, path) {
		t.Error(text)
	}
	for name, change := range map[string]func(*Result){
		"interrupted": func(r *Result) { r.Interrupted = true }, "too short": func(r *Result) { r.Needed = 1 }, "other tokens": func(r *Result) { r.Candidates[0].OtherTokens = true },
	} {
		r := faster(depth)
		change(r)
		if err := r.Keep(path, &cfg, time.Now()); err != nil || r.Kept.Saved || r.Kept.Removed {
			t.Errorf("%s: %+v, %v", name, r.Kept, err)
		}
		if k, err := tuned.Load(path); err != nil || k.Settings != workers {
			t.Errorf("%s: the file has %+v, %v", name, k, err)
		}
	}
	for i := range 2 {
		r := faster(depth)
		r.Verdict.Significant = false
		if err := r.Keep(path, &cfg, time.Now()); err != nil || r.Kept.Saved || r.Kept.Removed != (i == 0) {
			t.Errorf("no difference, time %d: %+v, %v", i+1, r.Kept, err)
		}
		if _, err := tuned.Load(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no difference: the file is there, %v", err)
		}
		text := r.Text()
		if !strings.Contains(text, "no difference beyond the spread: the defaults stay. --ring-depth 3 took 10.0% less time, the median of 6 pairs") || strings.Contains(text, "are removed") != (i == 0) {
			t.Error(text)
		}
	}
	if err := os.WriteFile(filepath.Dir(path)+"2", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r = faster(depth)
	if err := r.Keep(filepath.Join(filepath.Dir(path)+"2", "file.json"), &cfg, time.Now()); err == nil || !strings.Contains(err.Error(), "give them as flags") || r.Kept.Saved || strings.Contains(r.Text(), "by default") {
		t.Errorf("no folder: %v, %s", err, r.Text())
	}
}
