package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// sweepArgs are a sweep of four settings of the demo model with few slots.
func sweepArgs(more ...string) []string {
	return append([]string{"bench", "--sweep", "--grid", "ring-depth=1,2", "--grid", "expert-memory=3MiB,5MiB", "--expert-io", "buffered",
		"--prompt-tokens", "5", "--gen-tokens", "3", "--warmup", "2"}, more...)
}

// TestSweep tries every combination as often as asked for, and names the one that took least.
func TestSweep(t *testing.T) {
	o := callWith(t.Context(), benchEnv(), "", sweepArgs("--repeat", "2", "--json")...)
	var r sweepResult
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.code != exitOK {
		t.Fatalf("exit %d, stdout %q, stderr %q, %v", o.code, o.stdout, o.stderr, err)
	}
	seen, slots := map[string]bool{}, map[string]int{}
	for i, s := range r.Settings {
		seen[s.Flags["ring-depth"]+" "+s.Flags["expert-memory"]] = true
		if len(s.Runs) != 2 || s.Decode.Tokens != 6 || s.Prefill.Tokens != 10 || s.Seconds.Median <= 0 || s.Slots == 0 {
			t.Errorf("setting %v: %+v, want two runs of 5 and 3 tokens", s.Flags, s)
		}
		if i > 0 && s.Seconds.Median < r.Settings[i-1].Seconds.Median {
			t.Errorf("setting %d takes %g s, the one before it %g s", i, s.Seconds.Median, r.Settings[i-1].Seconds.Median)
		}
		slots[s.Flags["expert-memory"]] = s.Slots
	}
	if len(seen) != 4 || slots["3MiB"] >= slots["5MiB"] {
		t.Errorf("settings %v, slots %v; want four settings, and more slots in more memory", seen, slots)
	}
	want := " --expert-io buffered --ring-depth " + r.Settings[0].Flags["ring-depth"] + " --expert-memory " + r.Settings[0].Flags["expert-memory"]
	if !strings.HasPrefix(r.Best, "moeflux-actor run --model ") || !strings.HasSuffix(r.Best, want) {
		t.Errorf("best %q, want it to end with %q", r.Best, want)
	}
	text := mustCall(t, "", sweepArgs("--repeat", "1")...).stdout
	for _, want := range []string{"ring-depth     expert-memory ", "\nbest: moeflux-actor run --model ", "; warm, 2 tokens decoded before; 1 rounds"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// TestSweepInterrupted prints what it has.
func TestSweepInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e, limits := benchEnv(), 0
	e.memoryLimit = func() int64 { // asked once by the sweep and once a session
		if limits++; limits == 4 {
			cancel()
		}
		return 0
	}
	o := callWith(ctx, e, "", sweepArgs("--json")...)
	var r sweepResult
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.code != exitInterrupted || !r.Interrupted || len(r.Settings) != 2 {
		t.Errorf("exit %d, stdout %q, stderr %q, %v; want two settings and that it was interrupted", o.code, o.stdout, o.stderr, err)
	}
}

func TestQuoted(t *testing.T) {
	for in, want := range map[string]string{"4GiB": "4GiB", "/a/b-c_1.2": "/a/b-c_1.2", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "50%": "50%"} {
		if got := quoted(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// TestBenchCold makes one run from empty slots and holds it against the best cache, which nobody
// reads less than. Where every expert has a slot all are read, whoever asks, and there is nothing
// to hold that against.
func TestBenchCold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	mustCall(t, "", synthArgs(dir)...)
	for _, c := range []struct {
		memory string
		enough bool
	}{{"26MiB", false}, {"1GiB", true}} { // for 10 of 12 experts, and for all
		r := mustBench(t, benchEnv(), "--model", dir, "--cold", "--prompt-tokens", "1", "--gen-tokens", "9", "--expert-io", "buffered",
			"--expert-memory", c.memory, "--prefetch", "off")
		if r.State != stateCold || r.WarmupTokens != 0 || r.Repeat != 1 || len(r.Cases) != 1 || len(r.Cases[0].Runs) != 1 || (r.Optimum == nil) != c.enough || len(r.Disk) != 1 {
			t.Fatalf("%s: %+v", c.memory, r)
		}
		d, from := r.Cases[0].Decode, "since every expert has a slot"
		if o := r.Optimum; o != nil {
			from = "from empty slots"
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
