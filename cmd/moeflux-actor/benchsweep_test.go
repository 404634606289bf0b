package main

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/bench"
	"github.com/moeflux/moeflux-actor/internal/flags"
)

// sweepArgs race four settings of the demo model with few slots.
func sweepArgs(more ...string) []string {
	return append([]string{"bench", "--sweep", "--grid", "ring-depth=1,2", "--grid", "expert-memory=3MiB,5MiB", "--expert-io", "buffered",
		"--prompt-tokens", "5", "--gen-tokens", "3", "--warmup", "2"}, more...)
}

// TestSweep races every combination and the defaults as often as asked for, the least time first,
// and then the best of them in pairs with the defaults.
func TestSweep(t *testing.T) {
	o := callWith(t.Context(), benchEnv(), "", sweepArgs("--repeat", "2", "--json")...)
	var r bench.SweepResult
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.code != exitOK {
		t.Fatalf("exit %d, stdout %q, stderr %q, %v", o.code, o.stdout, o.stderr, err)
	}
	seen, slots := map[string]bool{}, map[string]int{}
	for i, s := range r.Settings {
		seen[s.Flags["ring-depth"]+" "+s.Flags["expert-memory"]] = true
		if len(s.Runs) != 2 || s.Decode.Tokens != 6 || s.Prefill.Tokens != 10 || s.Seconds.Median <= 0 || s.Slots == 0 || s.Defaults != (len(s.Flags) == 0) {
			t.Errorf("setting %v: %+v, want two runs of 5 and 3 tokens", s.Flags, s)
		}
		if i > 0 && s.Seconds.Median < r.Settings[i-1].Seconds.Median {
			t.Errorf("setting %d takes %g s, the one before it %g s", i, s.Seconds.Median, r.Settings[i-1].Seconds.Median)
		}
		slots[s.Flags["expert-memory"]] = s.Slots
	}
	if len(seen) != 5 || slots["3MiB"] >= slots["5MiB"] || slots["5MiB"] >= slots[""] {
		t.Errorf("settings %v, slots %v; want four settings and the defaults, and more slots in more memory", seen, slots)
	}
	if v := r.Verdict; r.Settings[0].Defaults != (v == nil) || v != nil && (len(v.Pairs) != bench.SweepPairs || v.P <= 0 || v.P > 1 || v.Significant != (v.P <= bench.SweepLevel)) {
		t.Errorf("verdict %+v", v)
	}
	want := " --expert-io buffered --tuned off"
	if r.Verdict != nil && r.Verdict.Significant {
		want += " --ring-depth " + r.Settings[0].Flags["ring-depth"] + " --expert-memory " + r.Settings[0].Flags["expert-memory"]
	}
	if !strings.HasPrefix(r.Best, "moeflux-actor run --model ") || !strings.HasSuffix(r.Best, want) {
		t.Errorf("best %q, want it to end with %q", r.Best, want)
	}
	text := mustCall(t, "", sweepArgs("--repeat", "1")...).stdout
	for _, want := range []string{"ring-depth     expert-memory  ", "\ndefault        default  ", "; warm, 2 tokens decoded before; 1 round\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// TestSweepSamePlan races no setting twice, and none at all if nothing changes the plan.
func TestSweepSamePlan(t *testing.T) {
	// Mapped experts are not read: neither workers nor predictions matter.
	o := mustCall(t, "", "bench", "--sweep", "--grid", "read-workers=2,4", "--grid", "prefetch=off,both", "--expert-io", "mmap")
	if want := "none of these settings changes the plan here: 4 combinations and the defaults are the same. Keep the defaults."; !strings.Contains(o.stdout, want) {
		t.Errorf("mapped experts: %s\nwant %s", o.stdout, want)
	}
	// Prompts of 5 tokens do not fill chunks of 8, and the default ring depth is 2.
	args := []string{"bench", "--sweep", "--grid", "ring-depth=1,2", "--grid", "chunk-rows=4,8,64", "--expert-io", "buffered",
		"--prompt-tokens", "5", "--gen-tokens", "1", "--warmup", "0", "--repeat", "1", "--json"}
	var r bench.SweepResult
	if o := mustCall(t, "", args...); json.Unmarshal([]byte(o.stdout), &r) != nil || len(r.Settings) != 4 {
		t.Fatalf("%s\nwant 4 plans", o.stdout)
	}
	same := map[string]int{}
	for _, s := range r.Settings {
		same[name0(s)] = len(s.Same)
	}
	if want := map[string]int{"defaults": 2, "1 4": 0, "1 8": 1, "2 4": 0}; !maps.Equal(same, want) {
		t.Errorf("the same plans: %v, want %v", same, want)
	}
}

func name0(s *bench.SweepSetting) string {
	if s.Defaults {
		return "defaults"
	}
	return s.Flags["ring-depth"] + " " + s.Flags["chunk-rows"]
}

// TestSweepVerdict recommends a setting only if the pairs say that it is faster.
func TestSweepVerdict(t *testing.T) {
	cmd := new(benchCmd)
	defaults := &bench.SweepSetting{Defaults: true, Flags: bench.Flags{}, Runs: make([]bench.Run, 1)}
	faster := &bench.SweepSetting{Flags: bench.Flags{"ring-depth": "1"}, Args: []string{"ring-depth=1"}, Runs: make([]bench.Run, 1)}
	defaults.Runs[0].Decode.Seconds, faster.Runs[0].Decode.Seconds = 10, 9
	for _, c := range []struct {
		name        string
		candidate   []float64 // seconds; the defaults take 10
		interrupted bool
		best, says  string
	}{
		{"always faster", []float64{9, 9.1, 8, 9.5, 9.4, 9.9}, false, "moeflux-actor run --model m --ring-depth 1", "7.5% less time than the defaults, the median of 6 pairs (Wilcoxon signed-rank, one-sided, 5 %, p = 0.016)"},
		{"slower once, by little", []float64{9, 9.1, 8, 9.5, 9.4, 10.1}, false, "moeflux-actor run --model m --ring-depth 1", "best: moeflux-actor run --model m --ring-depth 1"},
		{"slower twice", []float64{9, 9.1, 8, 9.5, 10.4, 10.7}, false, "moeflux-actor run --model m", "no difference beyond the spread, keep the defaults: ring-depth=1 took 7.0% less time, the median of 6 pairs (Wilcoxon"},
		{"equal", []float64{10, 10, 10, 10, 10, 10}, false, "moeflux-actor run --model m", "p = 1.000"},
		{"slower", []float64{11, 12, 13, 14, 15, 16}, false, "moeflux-actor run --model m", "took 35.0% more time"},
		{"interrupted", nil, true, "moeflux-actor run --model m", "interrupted before the comparison with the defaults: keep the defaults"},
		{"the defaults are the best", nil, false, "moeflux-actor run --model m", "no setting was faster than the defaults: keep the defaults"},
	} {
		r := &bench.SweepResult{Model: "m", Interrupted: c.interrupted}
		if c.candidate != nil {
			r.Verdict = &bench.SweepVerdict{Test: bench.SweepTest}
			for _, s := range c.candidate {
				r.Verdict.Pairs = append(r.Verdict.Pairs, bench.SweepPair{Candidate: s, Defaults: 10})
			}
			if err := r.Verdict.Judge(); err != nil {
				t.Fatal(err)
			}
		}
		r.Rank([]*bench.SweepSetting{defaults, faster})
		r.Best = cmd.bestCommand(r)
		if got := r.Text(); r.Best != c.best || !strings.Contains(got, c.says) {
			t.Errorf("%s: best %q\n%s\nwant %q and %q", c.name, r.Best, got, c.best, c.says)
		}
	}
}

// An interrupted sweep prints what it has.
func TestSweepInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e, limits := benchEnv(), 0
	e.MemoryLimit = func() int64 { // asked once by the sweep and once a session
		if limits++; limits == 4 {
			cancel()
		}
		return 0
	}
	o := callWith(ctx, e, "", sweepArgs("--json")...)
	var r bench.SweepResult
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.code != exitInterrupted || !r.Interrupted || len(r.Settings) != 2 {
		t.Errorf("exit %d, stdout %q, stderr %q, %v; want two settings and that it was interrupted", o.code, o.stdout, o.stderr, err)
	}
}

func TestQuoted(t *testing.T) {
	for in, want := range map[string]string{"4GiB": "4GiB", "/a/b-c_1.2": "/a/b-c_1.2", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "50%": "50%"} {
		if got := flags.Quoted(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// TestBenchCold makes one run from empty slots and compares it with the best cache, which reads the
// least. If every expert has a slot, all are read in the background, and no cache is better.
func TestBenchCold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	mustCall(t, "", synthArgs(dir)...)
	for _, c := range []struct {
		memory string
		enough bool
	}{{"26MiB", false}, {"1GiB", true}} { // for 10 of 12 experts, and for all
		r := mustBench(t, testEnv(), "--model", dir, "--cold", "--prompt-tokens", "1", "--gen-tokens", "9", "--expert-io", "buffered",
			"--expert-memory", c.memory, "--prefetch", "off")
		if r.State != bench.StateCold || r.WarmupTokens != 0 || r.Repeat != 1 || len(r.Cases) != 1 || len(r.Cases[0].Runs) != 1 || (r.Optimum == nil) != c.enough || len(r.Disk) != 1 {
			t.Fatalf("%s: %+v", c.memory, r)
		}
		d, from := r.Cases[0].Decode, "since every expert has a slot"
		if o := r.Optimum; o != nil {
			from = "from empty slots"
			if b := o.Bounds; b == nil || b.Together <= 0 || b.ByToken < b.Together*(1-1e-9) || b.ByLayer < b.ByToken*(1-1e-9) {
				t.Errorf("%s: bounds %+v, want none without memory or disk, each at least the one before", c.memory, b)
			}
			if o.Misses > d.ExpertMisses || o.Bytes > d.BytesRead || o.Misses == 0 {
				t.Errorf("%s: the best cache misses %d and reads %d bytes, this one %d and %d", c.memory, o.Misses, o.Bytes, d.ExpertMisses, d.BytesRead)
			}
		}
		f := r.Forecast
		if f == nil || f.TokensPerSecond <= 0 || !strings.Contains(f.KeptRateFrom, from) || d.ForecastShare == nil {
			t.Errorf("%s: forecast %+v, share %v", c.memory, f, d.ForecastShare)
		}
	}
}
