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

// benchEnv has little free memory, so that measuring its bandwidth is quick.
func benchEnv() env {
	e := testEnv()
	e.freeMemory = func() (int64, error) { return 512 << 20, nil }
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

// The figures of a bench agree: what is counted, what follows from it, and what inspect says.
func TestBench(t *testing.T) {
	inspected := mustInspect(t)
	r := mustBench(t, benchEnv(), "--prompt-tokens", "7", "--gen-tokens", "3", "--repeat", "2", "--threads", "2", "--warmup", "3")
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
	checkSummary(t, "prefill", r, c.Prefill, c.Runs, 7, func(run benchRun) benchPart { return run.Prefill })
	checkSummary(t, "decode", r, c.Decode, c.Runs, 3, func(run benchRun) benchPart { return run.Decode })
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
func checkSummary(t *testing.T, name string, r *benchResult, s benchSummary, runs []benchRun, tokens int, part func(benchRun) benchPart) {
	t.Helper()
	var (
		sum           benchCounts
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
		sum.add(&p.totalCounts)
		work, touched = append(work, float64(p.MultiplyAdds)/p.Seconds), append(touched, float64(p.Touched)/p.Seconds)
	}
	sum.setRate()
	if s.benchCounts != sum {
		t.Errorf("%s: %+v, want the runs' %+v", name, s.benchCounts, sum)
	}
	if v := s.TokensPerSecond; !(v.Min <= v.Median && v.Median <= v.Max && v.Min > 0) {
		t.Errorf("%s: %+v, want the median between the others", name, v)
	}
	// equal but for the rounding of JSON
	if want := spreadOf(work).Median; math.Abs(s.MultiplyAdds-want) > 1e-9*want {
		t.Errorf("%s: %g multiply-adds a second, want %g", name, s.MultiplyAdds, want)
	}
	if r.Memory == nil {
		if s.BandwidthShare != nil {
			t.Errorf("%s: a share of %g of no bandwidth", name, *s.BandwidthShare)
		}
		return
	}
	if want := spreadOf(touched).Median / r.Memory.Max; s.BandwidthShare == nil || math.Abs(*s.BandwidthShare-want) > 1e-9*want {
		t.Errorf("%s: share %v of the bandwidth, want %g", name, s.BandwidthShare, want)
	}
}

// A measurement of memory that caught other work on the machine does not lift the share of a run.
func TestBandwidthShareOfMost(t *testing.T) {
	m := &benchMemory{spread: spreadOf([]float64{12e9, 11e9, 31e9, 12e9})}
	run := benchRun{Decode: benchPart{Seconds: 1, benchCounts: benchCounts{Touched: 30e9}}}
	s := summary([]benchRun{run}, m, func(r benchRun) benchPart { return r.Decode })
	if want := 30.0 / 31; s.BandwidthShare == nil || math.Abs(*s.BandwidthShare-want) > 1e-9 {
		t.Errorf("30 of 12, 11, 31 and 12 GB/s: a share of %v, want %g", s.BandwidthShare, want)
	}
	if s := summary([]benchRun{run}, nil, func(r benchRun) benchPart { return r.Decode }); s.BandwidthShare != nil {
		t.Errorf("memory was not measured: a share of %g, want none", *s.BandwidthShare)
	}
}

// Several texts count together, fewer experts touch fewer bytes, and a small cache reads.
func TestBenchSequences(t *testing.T) {
	e := benchEnv()
	e.freeMemory = func() (int64, error) { return 1 << 20, nil }
	r := mustBench(t, e, "--prompt-tokens", "5,9", "--gen-tokens", "2", "--repeat", "1", "--sequences", "3,1", "--warmup", "1",
		"--experts-per-token", "2", "--expert-io", "buffered", "--expert-memory", "3MiB", "--prefetch", "off")
	var got [][2]int
	for _, c := range r.Cases {
		got = append(got, [2]int{c.PromptTokens, c.Sequences})
		checkSummary(t, "prefill", r, c.Prefill, c.Runs, c.PromptTokens*c.Sequences, func(run benchRun) benchPart { return run.Prefill })
		checkSummary(t, "decode", r, c.Decode, c.Runs, 2*c.Sequences, func(run benchRun) benchPart { return run.Decode })
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
const countKeys = "bytes_read bytes_read_ahead bytes_read_warm compute_seconds disk_wait_seconds expert_hit_rate expert_hits expert_kept_rate expert_misses overlap_seconds prefetch_declined prefetch_dropped " +
	"prefetch_held prefetch_hits prefetch_issued prefetch_late prefetch_paused_layers prefetch_pauses prefetch_skipped prefetch_wasted read_seconds " +
	"bytes_uploaded disk_bytes major_faults read_worker_seconds reads reads_failed reads_from_host reads_hurried reads_overdue reads_retried reads_speculative"

// sortedWords merges lists of words into a sorted one.
func sortedWords(lists ...string) string {
	return strings.Join(slices.Sorted(slices.Values(strings.Fields(strings.Join(lists, " ")))), " ")
}

// Scripts rely on these names.
func TestBenchJSON(t *testing.T) {
	r := &benchResult{Memory: &benchMemory{}, Cases: []*benchCase{{Runs: []benchRun{{}}}}}
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
	e.freeMemory = func() (int64, error) { return 1 << 20, nil }
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
	r := &benchResult{Repeat: 3, Interrupted: true, Memory: &benchMemory{spread: spread{42e9, 41e9, 43e9}, Threads: 2, Loop: "neon"},
		Cases: []*benchCase{{PromptTokens: 4, Sequences: 2, Decode: benchSummary{BandwidthShare: &share}, Runs: []benchRun{{}}}}}
	for _, want := range []string{"42.0 GB/s read (41.0 to 43.0) by 2 threads (neon)", "  12.5%\n", "during run 2 of 3"} {
		if text := r.text(); !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// A synthetic model gets pieces of its chain: each prompt follows the previous prompt and its
// decoded text.
func TestBenchOfTheChain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	var made synthResult
	if err := json.Unmarshal([]byte(mustCall(t, "", synthArgs("--json", "--chain", "60", dir)...).stdout), &made); err != nil {
		t.Fatal(err)
	}
	e := benchEnv()
	e.freeMemory = func() (int64, error) { return 0, nil }
	r := mustBench(t, e, "--model", dir, "--prompt-tokens", "4", "--gen-tokens", "2", "--repeat", "1", "--sequences", "2", "--warmup", "0")
	if r.Prompts != "chain" || r.Cases[0].Decode.Tokens != 4 {
		t.Errorf("got %+v, want prompts of the chain and 4 tokens decoded", r)
	}
	flags := &engineFlags{Model: dir, Device: "auto", Activations: "f32", Trace: "off", TraceSample: 1, LogLevel: "warn", LogFormat: "text"}
	inv := &invocation{stdout: &resultWriter{w: &strings.Builder{}}, stderr: &strings.Builder{}, env: testEnv()}
	s, err := openSession(t.Context(), inv, flags)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	prompts, err := newBenchPrompts(s, 6)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range prompts.of(3, 2, 4) {
		from := 6 * (3 + i)
		if want := made.Chain[from : from+4]; !slices.Equal(got, want) {
			t.Errorf("prompt %d: %d, want %d", 3+i, got, want)
		}
	}
	// A run evaluates the prompt and every token that it decodes.
	b, err := newBenchRunner(t.Context(), inv, s, &benchSetting{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if _, err := b.run(t.Context(), [][]int32{made.Chain[:4]}, 2); err != nil || b.texts[0].Len() != 6 || b.texts[1].Len() != 0 {
		t.Errorf("a run of 4 and 2 tokens leaves %d and %d positions, %v; want 6 and 0", b.texts[0].Len(), b.texts[1].Len(), err)
	}
}

// The default of --warmup is 100 tokens, or what the context leaves.
func TestBenchWarmup(t *testing.T) {
	e := benchEnv()
	e.freeMemory = func() (int64, error) { return 0, nil }
	for _, c := range []struct {
		ctx  string
		want int
	}{{"64", 60}, {"512", 100}} {
		if r := mustBench(t, e, "--prompt-tokens", "4", "--gen-tokens", "1", "--repeat", "1", "--ctx", c.ctx); r.WarmupTokens != c.want {
			t.Errorf("context %s: %d tokens of warm-up, want %d", c.ctx, r.WarmupTokens, c.want)
		}
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

// Counts are differences between two moments, over all layers.
func TestBenchCount(t *testing.T) {
	layer := func(h, m, b int64) stages.LayerStats {
		return stages.LayerStats{Hits: h, Misses: m, BytesRead: b, PrefetchLate: h / 5, PrefetchWasted: 2 * h, Times: stages.Times{ComputeNS: h * 1e9}}
	}
	got, setting := benchCounts{}, benchSetting{TouchedDense: 1000, expertBytes: 7}
	before := &actors.Stats{Steps: 4, Layers: []stages.LayerStats{layer(10, 5, 100), layer(1, 2, 3)}, Times: stages.Times{ReadNS: 1e9},
		Reads: stages.ReadStats{Ended: 10, Speculative: 4, Hurried: 1, Failed: 1, Retried: 2, Overdue: 3, Bytes: 90, FromHost: 9, Uploaded: 4 << 20, WorkerTime: time.Second, MajorFaults: 5}}
	after := &actors.Stats{Steps: 6, Layers: []stages.LayerStats{layer(15, 6, 150), layer(2, 3, 8)}, Times: stages.Times{
		ComputeNS: 3e9, OverlapNS: 25e7, DiskWaitNS: 5e8, ReadNS: 175e7,
	}, Reads: stages.ReadStats{Ended: 18, Speculative: 11, Hurried: 7, Failed: 6, Retried: 6, Overdue: 6, Bytes: 100, FromHost: 12, Uploaded: 10 << 20, WorkerTime: 3 * time.Second, MajorFaults: 6}}
	after.Layers[1].PrefetchPaused, after.Layers[1].PrefetchPauses, after.Layers[0].PrefetchHeld = true, 2, 3
	before.Layers[1].PrefetchPauses, before.Layers[0].PrefetchHeld = 1, 9
	got.count(before, after, &setting)
	want := benchCounts{Steps: 2, Touched: 2056, totalCounts: totalCounts{
		engineCounts: engineCounts{
			ExpertHits: 6, ExpertMisses: 2, ExpertHitRate: 0.75, ExpertKeptRate: 0.625, BytesRead: 55, PrefetchLate: 1, PrefetchWasted: 12,
			PrefetchHeld: 3, PrefetchPauses: 1, PrefetchPaused: 1, timeCounts: timeCounts{3, 0.25, 0.5, 0.75},
		},
		readCounts: readCounts{
			Reads: 8, ReadsSpeculative: 7, ReadsHurried: 6, ReadsFailed: 5, ReadsRetried: 4, ReadsOverdue: 3, ReadBytes: 10, FromHost: 3, Uploaded: 6 << 20, ReadWork: 2, MajorFaults: 1,
		},
	}}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	layers := layersBetween(before, after)
	if l := layers[0]; l.Layer != 0 || l.ExpertHits != 5 || l.Compute != 5 || len(layers) != 2 {
		t.Errorf("layers %+v", layers)
	}
	if all := countsBetween(nil, after); all.ExpertHits != 17 || all.Read != 1.75 {
		t.Errorf("since the beginning: %+v", all)
	}
	if s := want.perToken(2); s != "a token computes for 1500.0 ms, waits 250.0 ms for the disk, reads for 375.0 ms (33% of it while computing)" {
		t.Errorf("per token: %s", s)
	}
	if s := want.readCounts.text(); s != "8 reads (7 ahead, 6 hurried); 4 retried, 5 failed, 3 overdue; 6.00 MiB uploaded, 3 experts from the host's memory" {
		t.Errorf("reads: %s", s)
	}
	if s := want.aheadText("both", 2); s != "read ahead (both, 2 layers): 1 used, 1 of them late, 12 unused, 3 held; 1 pause, 1 layer paused now" {
		t.Errorf("reading ahead: %s", s)
	}
	if s := want.aheadText("off", 0); s != "" {
		t.Errorf("reading ahead without a predictor: %s", s)
	}
	// Nothing that did not happen is printed.
	if s := new(readCounts).text() + new(engineCounts).aheadText("both", 2); s != "" {
		t.Errorf("nothing was read: %s", s)
	}
}

// The first error stops the others and is returned.
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
	e := benchEnv()
	e.freeMemory = func() (int64, error) { return 0, errors.New("no idea") }
	o := callWith(t.Context(), e, "", "bench")
	if o.code != exitFailed || !strings.Contains(o.stderr, "free memory is unknown: no idea") {
		t.Errorf("exit %d, stderr %q; want %d and the reason", o.code, o.stderr, exitFailed)
	}
	checkErrorLine(t, o)
}

// Ctrl-C ends a bench while it measures memory and in every part of the runs. It prints what it has
// measured.
func TestBenchInterrupted(t *testing.T) {
	printed := 0
	for _, at := range []int{0, 1, 2, 5, 20, 60, 80} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			e, calls, frozen := benchEnv(), 0, time.Now()
			e.freeMemory = func() (int64, error) {
				if at == 0 {
					cancel()
				}
				return 512 << 20, nil
			}
			e.now = func() time.Time { // by one goroutine at a time
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
			var r benchResult
			if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || !r.Interrupted || len(r.Cases[0].Runs) == 0 || len(r.Cases[0].Runs) >= r.Repeat {
				t.Errorf("stdout %q, %v; want a part of the runs and that it was interrupted", o.stdout, err)
			}
		})
	}
	if printed < 2 {
		t.Errorf("%d of the interrupted runs printed what they had, want the last ones", printed)
	}
}
