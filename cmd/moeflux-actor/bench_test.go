package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/bench"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/forecast"
	"github.com/moeflux/moeflux-actor/internal/process"
)

// benchEnv has too little free memory to measure its bandwidth, which takes longer than most of
// these runs.
func benchEnv() process.Env {
	e := testEnv()
	e.FreeMemory = func() (int64, error) { return 1 << 20, nil }
	return e
}

func mustBench(t *testing.T, e process.Env, args ...string) *bench.Result {
	t.Helper()
	args = append([]string{"bench", "--json"}, args...)
	o := callWith(t.Context(), e, "", args...)
	var r bench.Result
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.code != exitOK {
		t.Fatalf("%q: exit %d, stdout %q, stderr %q, %v", args, o.code, o.stdout, o.stderr, err)
	}
	return &r
}

// The figures of a bench agree: what is counted, what follows from it, and what inspect says.
func TestBench(t *testing.T) {
	inspected := mustInspect(t)
	r := mustBench(t, testEnv(), "--prompt-tokens", "7", "--gen-tokens", "3", "--repeat", "2", "--threads", "2", "--warmup", "3")
	if r.Threads != 2 || r.Prompts != "random" || r.State != "warm" || r.WarmupTokens != 3 || r.Repeat != 2 || r.GenTokens != 3 ||
		r.TopK != inspected.Shape.ExpertsPerToken || r.Device == "" || r.Activations == "" || r.Interrupted {
		t.Errorf("the setting is %+v", r)
	}
	if r.TouchedToken != inspected.Bytes.TouchedToken || r.TouchedDense != inspected.Bytes.TouchedDense || r.TouchedToken != r.TouchedDense+r.TouchedExp {
		t.Errorf("touched %d = %d + %d, inspect says %+v", r.TouchedToken, r.TouchedDense, r.TouchedExp, inspected.Bytes)
	}
	m := r.Memory
	if m == nil || m.Threads != 2 || m.Bytes != 128<<20 || m.Loop == "" || m.Min < 1e8 || !(m.Min <= m.Median && m.Median <= m.Max) {
		t.Fatalf("bandwidth %+v, want a plausible one of 2 threads and 128 MiB", m)
	}
	if len(r.Cases) != 1 || r.Cases[0].PromptTokens != 7 || r.Cases[0].Sequences != 1 || len(r.Cases[0].Runs) != 2 {
		t.Fatalf("cases %+v, want one of 7 tokens and 1 text with 2 runs", r.Cases)
	}
	c := r.Cases[0]
	checkSummary(t, "prefill", r, c.Prefill, c.Runs, 7, func(run bench.Run) bench.Part { return run.Prefill })
	checkSummary(t, "decode", r, c.Decode, c.Runs, 3, func(run bench.Run) bench.Part { return run.Decode })
	info := inspected.State
	if want := info.Fixed + info.KVPerToken*(2*7+3+1)/2; c.StatePerToken != want {
		t.Errorf("%d bytes of state a token, want %d", c.StatePerToken, want)
	}
	for i, run := range c.Runs {
		// One text decodes a token a step, and each touches what inspect says.
		if p := run.Decode; p.Steps != 3 || p.Touched != 3*r.TouchedToken || p.MultiplyAdds != 3*(r.MACLayers+r.MACHead) {
			t.Errorf("run %d decodes %+v, want 3 steps of %d bytes and %d multiply-adds", i, p, r.TouchedToken, r.MACLayers+r.MACHead)
		}
		if p := run.Prefill; p.Steps != 1 || p.MultiplyAdds != 7*r.MACLayers+r.MACHead {
			t.Errorf("run %d reads the prompt with %+v, want 1 step and %d multiply-adds", i, p, 7*r.MACLayers+r.MACHead)
		}
	}
}

// checkSummary compares a summary with its runs, which have the given tokens each.
func checkSummary(t *testing.T, name string, r *bench.Result, s bench.Summary, runs []bench.Run, tokens int, part func(bench.Run) bench.Part) {
	t.Helper()
	var (
		sum           bench.Counts
		work, touched []float64
	)
	for i, run := range runs {
		p := part(run)
		if p.Tokens != tokens || p.Seconds <= 0 || math.Abs(p.TokensPerSecond*p.Seconds-float64(tokens)) > 1e-6 || p.ExpertHits+p.ExpertMisses == 0 {
			t.Errorf("%s of run %d: %+v, want %d tokens, their speed and experts used", name, i, p, tokens)
		}
		if v := p.TokensPerSecond; v < s.TokensPerSecond.Min || v > s.TokensPerSecond.Max {
			t.Errorf("%s of run %d: %g tokens a second, outside of %+v", name, i, v, s.TokensPerSecond)
		}
		sum.Tokens, sum.Steps = sum.Tokens+p.Tokens, sum.Steps+p.Steps
		sum.Touched += p.Touched
		sum.Add(&p.Totals)
		work, touched = append(work, float64(p.MultiplyAdds)/p.Seconds), append(touched, float64(p.Touched)/p.Seconds)
	}
	if s.Counts != sum {
		t.Errorf("%s: %+v, want the runs' %+v", name, s.Counts, sum)
	}
	if v := s.TokensPerSecond; !(v.Min <= v.Median && v.Median <= v.Max && v.Min > 0) {
		t.Errorf("%s: %+v, want the median between the others", name, v)
	}
	// equal but for the rounding of JSON
	if want := figures.SpreadOf(work).Median; math.Abs(s.MultiplyAdds-want) > 1e-9*want {
		t.Errorf("%s: %g multiply-adds a second, want %g", name, s.MultiplyAdds, want)
	}
	if r.Memory == nil {
		if s.BandwidthShare != nil {
			t.Errorf("%s: a share of %g of no bandwidth", name, *s.BandwidthShare)
		}
		return
	}
	if want := figures.SpreadOf(touched).Median / r.Memory.Max; s.BandwidthShare == nil || math.Abs(*s.BandwidthShare-want) > 1e-9*want {
		t.Errorf("%s: share %v of the bandwidth, want %g", name, s.BandwidthShare, want)
	}
}

// Several texts count together, fewer experts touch fewer bytes, and a small cache reads.
func TestBenchSequences(t *testing.T) {
	e := benchEnv()
	r := mustBench(t, e, "--prompt-tokens", "5,9", "--gen-tokens", "2", "--repeat", "1", "--sequences", "3,1", "--warmup", "1",
		"--experts-per-token", "2", "--expert-io", "buffered", "--expert-memory", "3MiB", "--prefetch", "off")
	var got [][2]int
	for _, c := range r.Cases {
		got = append(got, [2]int{c.PromptTokens, c.Sequences})
		checkSummary(t, "prefill", r, c.Prefill, c.Runs, c.PromptTokens*c.Sequences, func(run bench.Run) bench.Part { return run.Prefill })
		checkSummary(t, "decode", r, c.Decode, c.Runs, 2*c.Sequences, func(run bench.Run) bench.Part { return run.Decode })
		if c.Prefill.BytesRead == 0 || c.Prefill.ExpertMisses == 0 {
			t.Errorf("%d tokens, %d texts: %+v, want reads into slots", c.PromptTokens, c.Sequences, c.Prefill)
		}
	}
	if want := [][2]int{{5, 3}, {9, 3}, {5, 1}}; !slices.Equal(got, want) {
		t.Errorf("cases %v, want %v", got, want)
	}
	if r.TopK != 2 || r.ExpertIO != "buffered" || r.Slots == 0 || r.Memory != nil {
		t.Errorf("got %+v, want slots, 2 experts per token and no bandwidth", r)
	}
	if full := mustInspect(t); r.TouchedExp*int64(full.Shape.ExpertsPerToken) != full.Bytes.TouchedExp*2 || r.TouchedToken != r.TouchedDense+r.TouchedExp {
		t.Errorf("2 experts touch %d bytes, %d touch %d", r.TouchedExp, full.Shape.ExpertsPerToken, full.Bytes.TouchedExp)
	}
}

func mustInspect(t *testing.T) *inspectResult {
	t.Helper()
	var r inspectResult
	if err := json.Unmarshal([]byte(mustCall(t, "", "inspect", "--json").stdout), &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// keysOf returns the keys of the object at a path of keys below v. An array stands for its first
// element.
func keysOf(t *testing.T, v any, path ...string) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var at any
	if err := json.Unmarshal(raw, &at); err != nil {
		t.Fatal(err)
	}
	for _, key := range path {
		at = at.(map[string]any)[key]
		if list, ok := at.([]any); ok {
			at = list[0]
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(at.(map[string]any))), " ")
}

// settingKeys are the keys that bench prints with --soak and without.
const settingKeys = "activations architecture chunk_rows device expert_io expert_memory experts_per_token kv memory_limit model multiply_adds_head " +
	"multiply_adds_per_token prefetch prefetch_layers prompts read_workers resident ring_depth slots state threads touched_per_token touched_per_token_experts " +
	"touched_per_token_resident warmup_tokens"

// countKeys are the keys of an engine's counts.
const countKeys = "bytes_read bytes_read_ahead bytes_read_warm compute_seconds disk_wait_seconds expert_away expert_hit_rate expert_hits expert_kept_rate expert_misses overlap_seconds prefetch_declined prefetch_dropped " +
	"prefetch_held prefetch_hits prefetch_issued prefetch_late prefetch_paused_layers prefetch_pauses prefetch_skipped prefetch_wasted read_seconds " +
	"bytes_uploaded disk_bytes major_faults read_worker_seconds reads reads_failed reads_from_host reads_hurried reads_overdue reads_retried reads_speculative"

// sortedWords merges lists of words into a sorted one.
func sortedWords(lists ...string) string {
	return strings.Join(slices.Sorted(slices.Values(strings.Fields(strings.Join(lists, " ")))), " ")
}

// Scripts rely on these names.
func TestBenchJSON(t *testing.T) {
	r := &bench.Result{Memory: &forecast.Memory{}, Cases: []*bench.Case{{Runs: []bench.Run{{}}}}}
	counts := countKeys + " bytes_touched steps tokens"
	for _, c := range []struct{ path, want string }{
		{"", sortedWords(settingKeys, "cases disk forecast gen_tokens interrupted memory optimum repeat")},
		{"memory", "bytes first loop max median min threads"},
		{"cases", "decode prefill prompt_tokens runs sequences state_per_token"},
		{"cases decode", sortedWords(counts, "bandwidth_share forecast_share multiply_adds_per_second tokens_per_second")},
		{"cases decode tokens_per_second", "max median min"},
		{"cases runs prefill", sortedWords(counts, "multiply_adds seconds tokens_per_second")},
	} {
		if got := keysOf(t, r, strings.Fields(c.path)...); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.path, got, c.want)
		}
	}
}

func TestBenchText(t *testing.T) {
	e := benchEnv()
	o := callWith(t.Context(), e, "", "bench", "--prompt-tokens", "3", "--gen-tokens", "2", "--repeat", "1", "--warmup", "2")
	for _, want := range []string{"random prompts, 2 tokens decoded after each; warm, 2 tokens decoded before", "\nprefill        3     1", "\ndecode         3     1",
		"\nper token ", "\nmemory        not measured", " activations, "} {
		if !strings.Contains(o.stdout, want) || o.code != exitOK {
			t.Errorf("exit %d, stdout lacks %q:\n%s", o.code, want, o.stdout)
		}
	}
	if !strings.Contains(o.stderr, "1.00 MiB of free memory is too little to measure its bandwidth") {
		t.Errorf("stderr %q does not say why the bandwidth is missing", o.stderr)
	}
	share := 0.125
	r := &bench.Result{Repeat: 3, Interrupted: true, Memory: &forecast.Memory{Spread: figures.Spread{Median: 42e9, Min: 41e9, Max: 43e9}, Threads: 2, Loop: "neon"},
		Cases: []*bench.Case{{PromptTokens: 4, Sequences: 2, Decode: bench.Summary{BandwidthShare: &share}, Runs: []bench.Run{{}}}}}
	for _, want := range []string{"42.0 GB/s read (41.0 to 43.0) by 2 threads (neon)", "  12.5%\n", "during run 2 of 3"} {
		if text := r.Text(); !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// The default of --warmup is 100 tokens, or what the context leaves.
func TestBenchWarmup(t *testing.T) {
	e := benchEnv()
	e.FreeMemory = func() (int64, error) { return 0, nil }
	for _, c := range []struct {
		ctx  string
		want int
	}{{"64", 60}, {"512", 100}} {
		if r := mustBench(t, e, "--prompt-tokens", "4", "--gen-tokens", "1", "--repeat", "1", "--ctx", c.ctx); r.WarmupTokens != c.want {
			t.Errorf("context %s: %d tokens of warm-up, want %d", c.ctx, r.WarmupTokens, c.want)
		}
	}
}

func TestBenchUsage(t *testing.T) {
	// unpack the demo model, which a command reports once
	if o := call(t, "", "inspect"); o.code != exitOK {
		t.Fatalf("inspect: exit %d, stderr %q", o.code, o.stderr)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--prompt-tokens", "0"}, "--prompt-tokens 0 must be from 1"},
		{[]string{"--prompt-tokens", "8,0"}, "--prompt-tokens 0"},
		{[]string{"--prompt-tokens", "8,8"}, "--prompt-tokens names 8 twice"},
		{[]string{"--prompt-tokens", "8,x"}, "--prompt-tokens"},
		{[]string{"--gen-tokens", "-1"}, "--gen-tokens -1"},
		{[]string{"--repeat", "0"}, "--repeat 0"},
		{[]string{"--sequences", "0"}, "--sequences 0"},
		{[]string{"--sequences", "2000000"}, "--sequences 2000000"},
		{[]string{"--warmup", "-1"}, "--warmup -1"},
		{[]string{"--cold", "--repeat", "2"}, "--cold is one run"},
		{[]string{"--cold", "--sequences", "2"}, "--cold is one run"},
		{[]string{"--cold", "--soak", "1m"}, "exclude each other"},
		{[]string{"--sweep", "--cold"}, "exclude each other"},
		{[]string{"--sweep", "--prompt-tokens", "1,2"}, "--sweep takes one"},
		{[]string{"--grid", "ring-depth=1,2"}, "--grid does nothing without --sweep"},
		{[]string{"--sweep", "--grid", "ring-depth"}, "must be NAME=VALUE,VALUE"},
		{[]string{"--sweep", "--grid", "ring-depth=1,"}, "must be NAME=VALUE,VALUE"},
		{[]string{"--sweep", "--grid", "ring-depth=1,1"}, "names 1 twice"},
		{[]string{"--sweep", "--grid", "ring-depth=1", "--grid", "ring-depth=2"}, "names ring-depth twice"},
		{[]string{"--sweep", "--grid", "ring-depth=0"}, "--grid ring-depth=0: must be a whole number, 1 or more"},
		{[]string{"--sweep", "--grid", "ring-depth=two"}, "--grid ring-depth=two"},
		{[]string{"--sweep", "--grid", "prefetch=guess"}, "--prefetch guess is unknown"},
		{[]string{"--sweep", "--grid", "expert-memory=8G"}, "not a size like 8GiB"},
		{[]string{"--sweep", "--grid", "threads=1,2"}, "no such setting"},
		{[]string{"--soak", "-1s"}, "--soak -1s"},
		{[]string{"--soak", "1ms"}, "--soak 1ms must be 1s"},
		{[]string{"--soak", "soon"}, "--soak"},
		{[]string{"--soak", "1m", "--sequences", "1,2"}, "--soak takes one"},
		{[]string{"--soak", "1m", "--prompt-tokens", "1,2"}, "--soak takes one"},
		{[]string{"--soak", "1m", "--ctx", "16"}, "a sequence has 16 positions"},
		{[]string{"--device", "abacus"}, "--device abacus"},
		{[]string{"--ctx", "16", "--prompt-tokens", "15", "--gen-tokens", "2"}, "a sequence has 16 positions"},
		{[]string{"fast"}, "unexpected argument fast"},
	} {
		o := call(t, "", append([]string{"bench"}, c.args...)...)
		if o.code != exitUsage || !strings.Contains(o.stderr, c.want) {
			t.Errorf("%q: exit %d, stderr %q; want %d and %q", c.args, o.code, o.stderr, exitUsage, c.want)
		}
		checkErrorLine(t, o)
	}
}

func TestBenchFailures(t *testing.T) {
	mustCall(t, "", "inspect") // unpacks the demo model
	e := benchEnv()
	e.FreeMemory = func() (int64, error) { return 0, errors.New("no idea") }
	o := callWith(t.Context(), e, "", "bench")
	if o.code != exitFailed || !strings.Contains(o.stderr, "free memory is unknown: no idea") {
		t.Errorf("exit %d, stderr %q; want %d and the reason", o.code, o.stderr, exitFailed)
	}
	checkErrorLine(t, o)
}

// Ctrl-C ends a bench while it measures memory and in every part of the runs. It prints what it has
// measured.
func TestBenchInterrupted(t *testing.T) {
	mustCall(t, "", "inspect") // unpacks the demo model
	printed := 0
	for _, at := range []int{0, 1, 2, 5, 20, 60, 80} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			e, calls, frozen := benchEnv(), 0, time.Now()
			e.FreeMemory = func() (int64, error) {
				if at == 0 {
					cancel()
				}
				return 512 << 20, nil
			}
			e.Now = func() time.Time { // by one goroutine at a time
				if calls++; calls == at {
					cancel()
				}
				return frozen // so that no line of progress is due
			}
			o := callWith(ctx, e, "", "bench", "--prompt-tokens", "5", "--gen-tokens", "20", "--sequences", "2", "--warmup", "20", "--json")
			if o.code != exitInterrupted {
				t.Errorf("exit %d, stderr %q; want %d", o.code, o.stderr, exitInterrupted)
			}
			if o.stdout == "" {
				checkErrorLine(t, o)
				return
			}
			printed++
			var r bench.Result
			if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || !r.Interrupted || len(r.Cases[0].Runs) == 0 || len(r.Cases[0].Runs) >= r.Repeat {
				t.Errorf("stdout %q, %v; want a part of the runs and that it was interrupted", o.stdout, err)
			}
		})
	}
	if printed < 2 {
		t.Errorf("%d of the interrupted runs printed what they had, want the last ones", printed)
	}
}

// A synthetic model gets pieces of its chain.
func TestBenchOfTheChain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	mustCall(t, "", synthArgs(dir)...)
	e := benchEnv()
	e.FreeMemory = func() (int64, error) { return 0, nil }
	r := mustBench(t, e, "--model", dir, "--prompt-tokens", "4", "--gen-tokens", "2", "--repeat", "1", "--sequences", "2", "--warmup", "0")
	if r.Prompts != "chain" || r.Cases[0].Decode.Tokens != 4 {
		t.Errorf("got %+v, want prompts of the chain and 4 tokens decoded", r)
	}
}
