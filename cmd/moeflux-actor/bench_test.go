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

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/stages"
)

// benchEnv lets the bandwidth be measured with little memory, for speed.
func benchEnv() env {
	e := testEnv()
	e.freeMemory = func() (int64, error) { return 1 << 30, nil }
	return e
}

func mustBench(t *testing.T, e env, args ...string) *benchResult {
	t.Helper()
	args = append([]string{"bench", "--json"}, args...)
	o := callWith(t.Context(), e, "", args...)
	var r benchResult
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.code != exitOK {
		t.Fatalf("%q: exit %d, stdout %q, stderr %q, %v", args, o.code, o.stdout, o.stderr, err)
	}
	return &r
}

// The figures of a bench belong together: what is counted, what follows from it, and what inspect says.
func TestBench(t *testing.T) {
	var inspected inspectResult
	if err := json.Unmarshal([]byte(mustCall(t, "", "inspect", "--json").stdout), &inspected); err != nil {
		t.Fatal(err)
	}
	r := mustBench(t, benchEnv(), "--prompt-tokens", "7", "--gen-tokens", "3", "--repeat", "2", "--threads", "2")
	if r.Threads != 2 || r.Prompts != "random" || r.State != "warm" || r.WarmupTokens != 3 || len(r.Runs) != 2 || r.Repeat != 2 ||
		r.Sequences != 1 || r.PromptTokens != 7 || r.GenTokens != 3 || r.TopK != inspected.Shape.ExpertsPerToken || r.Device == "" {
		t.Errorf("the setting is %+v", r)
	}
	if r.TouchedToken != inspected.Bytes.TouchedToken || r.TouchedDense != inspected.Bytes.TouchedDense || r.TouchedToken != r.TouchedDense+r.TouchedExp {
		t.Errorf("touched %d = %d + %d, inspect says %+v", r.TouchedToken, r.TouchedDense, r.TouchedExp, inspected.Bytes)
	}
	checkSummary(t, "prefill", r.Prefill, r.Runs, 7, func(run benchRun) benchPart { return run.Prefill })
	checkSummary(t, "decode", r.Decode, r.Runs, 3, func(run benchRun) benchPart { return run.Decode })
	if r.MemoryBandwidth == nil || r.BandwidthShare == nil {
		t.Fatalf("bandwidth %v, share %v, want both", r.MemoryBandwidth, r.BandwidthShare)
	}
	want := float64(r.TouchedToken) * r.Decode.TokensPerSecond.Median / *r.MemoryBandwidth
	if *r.MemoryBandwidth < 1e8 || math.Abs(*r.BandwidthShare-want) > 1e-9*want { // the same product, rounded by JSON
		t.Errorf("bandwidth %g, share %g, want a plausible one and %g", *r.MemoryBandwidth, *r.BandwidthShare, want)
	}
}

// checkSummary holds a summary against its runs, each of which has so many tokens.
func checkSummary(t *testing.T, name string, s benchSummary, runs []benchRun, tokens int, part func(benchRun) benchPart) {
	t.Helper()
	var sum benchCounts
	for i, run := range runs {
		p := part(run)
		if p.Tokens != tokens || p.Seconds <= 0 || math.Abs(p.TokensPerSecond*p.Seconds-float64(tokens)) > 1e-6 || p.Hits+p.Misses == 0 {
			t.Errorf("%s of run %d: %+v, want %d tokens, their speed and experts used", name, i, p, tokens)
		}
		if v := p.TokensPerSecond; v < s.TokensPerSecond.Min || v > s.TokensPerSecond.Max {
			t.Errorf("%s of run %d: %g tokens a second, outside of %+v", name, i, v, s.TokensPerSecond)
		}
		sum.Tokens, sum.Hits, sum.Misses, sum.Bytes = sum.Tokens+p.Tokens, sum.Hits+p.Hits, sum.Misses+p.Misses, sum.Bytes+p.Bytes
	}
	sum.setRate()
	if s.benchCounts != sum {
		t.Errorf("%s: %+v, want the runs' %+v", name, s.benchCounts, sum)
	}
	if v := s.TokensPerSecond; !(v.Min <= v.Median && v.Median <= v.Max && v.Min > 0) {
		t.Errorf("%s: %+v, want the median between the others", name, v)
	}
}

// Several texts at once count together; fewer experts touch fewer bytes; a small cache reads.
func TestBenchSequences(t *testing.T) {
	e := benchEnv()
	e.freeMemory = func() (int64, error) { return 1 << 20, nil }
	r := mustBench(t, e, "--prompt-tokens", "5", "--gen-tokens", "2", "--repeat", "1", "--sequences", "3",
		"--experts-per-token", "2", "--expert-io", "buffered", "--expert-memory", "3MiB")
	checkSummary(t, "prefill", r.Prefill, r.Runs, 15, func(run benchRun) benchPart { return run.Prefill })
	checkSummary(t, "decode", r.Decode, r.Runs, 6, func(run benchRun) benchPart { return run.Decode })
	if r.TopK != 2 || r.ExpertIO != "buffered" || r.Slots == 0 || r.Prefill.Bytes == 0 || r.Prefill.Misses == 0 {
		t.Errorf("got %+v, want reads into slots and 2 experts per token", r)
	}
	if full := mustInspect(t); r.TouchedExp*int64(full.Shape.ExpertsPerToken) != full.Bytes.TouchedExp*2 || r.TouchedToken != r.TouchedDense+r.TouchedExp {
		t.Errorf("2 experts touch %d bytes, %d touch %d", r.TouchedExp, full.Shape.ExpertsPerToken, full.Bytes.TouchedExp)
	}
	if r.MemoryBandwidth != nil || r.BandwidthShare != nil {
		t.Errorf("bandwidth %v, share %v with 1 MiB of memory, want neither", *r.MemoryBandwidth, r.BandwidthShare)
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

// The names that scripts rely on.
func TestBenchJSON(t *testing.T) {
	bandwidth := 1.5
	raw, err := json.Marshal(&benchResult{MemoryBandwidth: &bandwidth, Runs: []benchRun{{}}})
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Top map[string]any `json:"-"`
		Run []struct{ Decode map[string]any }
		Sum map[string]any `json:"decode"`
	}
	if err := errors.Join(json.Unmarshal(raw, &all.Top), json.Unmarshal(raw, &all)); err != nil {
		t.Fatal(err)
	}
	counts := "bytes_read expert_hit_rate expert_hits expert_misses"
	run := all.Top["runs"].([]any)[0].(map[string]any)["decode"].(map[string]any)
	for _, c := range []struct {
		what string
		got  map[string]any
		want string
	}{
		{"all", all.Top, "architecture bandwidth_share decode device expert_io experts_per_token gen_tokens memory_bytes_per_second model prefetch prefill prompt_tokens prompts repeat runs sequences slots state threads touched_per_token touched_per_token_experts touched_per_token_resident warmup_tokens"},
		{"decode", all.Sum, counts + " tokens tokens_per_second"},
		{"decode of a run", run, counts + " seconds tokens tokens_per_second"},
		{"speeds", all.Sum["tokens_per_second"].(map[string]any), "max median min"},
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(c.got)), " "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.what, got, c.want)
		}
	}
}

func TestBenchText(t *testing.T) {
	e := benchEnv()
	e.freeMemory = func() (int64, error) { return 1 << 20, nil }
	o := callWith(t.Context(), e, "", "bench", "--prompt-tokens", "3", "--gen-tokens", "2", "--repeat", "1")
	for _, want := range []string{"3 random prompt tokens and 2 decoded; warm, 2 tokens decoded before", "\nprefill ", "\ndecode ", "tokens/s (", "\nper token ", "not measured"} {
		if !strings.Contains(o.stdout, want) || o.code != exitOK {
			t.Errorf("exit %d, stdout lacks %q:\n%s", o.code, want, o.stdout)
		}
	}
	if !strings.Contains(o.stderr, "1.00 MiB of free memory are too few to measure its bandwidth") {
		t.Errorf("stderr %q does not say why the bandwidth is missing", o.stderr)
	}
	bandwidth, share := 42e9, 0.125
	text := (&benchResult{MemoryBandwidth: &bandwidth, BandwidthShare: &share}).text()
	if want := "42.0 GB/s read, of which decoding takes 12.5%"; !strings.Contains(text, want) {
		t.Errorf("the text lacks %q:\n%s", want, text)
	}
}

// A model that synth made is fed its chain: every prompt is the piece after the one before and the text that it decodes.
func TestBenchOfTheChain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	var made synthResult
	if err := json.Unmarshal([]byte(mustCall(t, "", synthArgs("--json", "--chain", "60", dir)...).stdout), &made); err != nil {
		t.Fatal(err)
	}
	e := benchEnv()
	e.freeMemory = func() (int64, error) { return 0, nil }
	r := mustBench(t, e, "--model", dir, "--prompt-tokens", "4", "--gen-tokens", "2", "--repeat", "1", "--sequences", "2")
	if r.Prompts != "chain" || r.Decode.Tokens != 4 {
		t.Errorf("got %+v, want prompts of the chain and 4 tokens decoded", r)
	}
	c := &benchCmd{PromptTokens: 4, GenTokens: 2, Sequences: 2, engineFlags: engineFlags{
		Model: dir, Device: "auto", Activations: "f32", Trace: "off", TraceSample: 1, LogLevel: "warn", LogFormat: "text"}}
	s, err := openSession(t.Context(), &invocation{stdout: &resultWriter{w: &strings.Builder{}}, stderr: &strings.Builder{}, env: testEnv()}, &c.engineFlags)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	prompts, err := newBenchPrompts(s, c)
	if err != nil {
		t.Fatal(err)
	}
	for run := range 3 {
		for i, got := range prompts.of(run, 4) {
			from := 6 * (2*run + i)
			if want := made.Chain[from : from+4]; !slices.Equal(got, want) {
				t.Errorf("run %d, sequence %d: %d, want %d", run, i, got, want)
			}
		}
	}
	// A run evaluates the prompt and every token that it decodes.
	b := &benchRunner{inv: &invocation{env: testEnv()}, s: s, bar: &progress{now: time.Now, shown: time.Now()}}
	seq, err := s.engine.NewSequence(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer seq.Close()
	b.seqs = []*actors.Sequence{seq}
	if _, err := b.run(t.Context(), [][]int32{made.Chain[:4]}, 2); err != nil || seq.Len() != 6 {
		t.Errorf("a run of 4 and 2 tokens leaves %d positions, %v; want 6", seq.Len(), err)
	}
}

func TestSpreadOf(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want spread
	}{
		{[]float64{3}, spread{3, 3, 3}},
		{[]float64{4, 1}, spread{2.5, 1, 4}},
		{[]float64{9, 1, 2}, spread{2, 1, 9}},
		{[]float64{8, 1, 2, 4}, spread{3, 1, 8}},
	} {
		if got := spreadOf(c.in); got != c.want {
			t.Errorf("spread of %v: got %v, want %v", c.in, got, c.want)
		}
	}
}

// Counts are those between two moments, over all layers.
func TestBenchCount(t *testing.T) {
	layer := func(h, m, b int64) stages.LayerStats { return stages.LayerStats{Hits: h, Misses: m, BytesRead: b} }
	var got benchCounts
	got.count(&actors.Stats{Layers: []stages.LayerStats{layer(10, 5, 100), layer(1, 2, 3)}},
		&actors.Stats{Layers: []stages.LayerStats{layer(15, 6, 150), layer(2, 3, 8)}})
	if want := (benchCounts{Hits: 6, Misses: 2, HitRate: 0.75, Bytes: 55}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The first error stops the others, and is the one that is told.
func TestTogether(t *testing.T) {
	bad := errors.New("bad")
	err := together(t.Context(), 3, func(ctx context.Context, i int) error {
		if i == 1 {
			return bad
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if err != bad {
		t.Errorf("got %v, want %v", err, bad)
	}
	if err := together(t.Context(), 3, func(context.Context, int) error { return nil }); err != nil {
		t.Errorf("without an error: %v", err)
	}
}

func TestBenchUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--prompt-tokens", "0"}, "--prompt-tokens 0, want 1"},
		{[]string{"--gen-tokens", "-1"}, "--gen-tokens -1"},
		{[]string{"--repeat", "0"}, "--repeat 0"},
		{[]string{"--sequences", "0"}, "--sequences 0"},
		{[]string{"--sequences", "2000000"}, "--sequences 2000000"},
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
	e := benchEnv()
	e.freeMemory = func() (int64, error) { return 0, errors.New("no idea") }
	o := callWith(t.Context(), e, "", "bench")
	if o.code != exitFailed || !strings.Contains(o.stderr, "how much memory is free: no idea") {
		t.Errorf("exit %d, stderr %q; want %d and the reason", o.code, o.stderr, exitFailed)
	}
	checkErrorLine(t, o)
}

// Ctrl-C ends it wherever it is: while memory is measured, and in every part of the runs.
func TestBenchInterrupted(t *testing.T) {
	for _, at := range []int{0, 1, 2, 5, 20, 60} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			e, calls, frozen := benchEnv(), 0, time.Now()
			e.freeMemory = func() (int64, error) {
				if at == 0 {
					cancel()
				}
				return 256 << 20, nil
			}
			e.now = func() time.Time { // by one goroutine at a time
				if calls++; calls == at {
					cancel()
				}
				return frozen // so that no line of progress is due
			}
			o := callWith(ctx, e, "", "bench", "--prompt-tokens", "5", "--gen-tokens", "20", "--sequences", "2")
			if o.code != exitInterrupted || !strings.Contains(o.stderr, context.Canceled.Error()) {
				t.Errorf("exit %d, stderr %q; want %d", o.code, o.stderr, exitInterrupted)
			}
			checkErrorLine(t, o)
		})
	}
}
