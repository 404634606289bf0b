package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/bench"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestBenchPrintsCounters compares the figures that bench prints with the engine's own counters:
// few slots, so that every kind of figure has something to say.
func TestBenchPrintsCounters(t *testing.T) {
	set := &flags.Engine{Settings: flags.Settings{Device: "auto", Activations: "int8", Prefetch: "both", ExpertIO: "buffered", ExpertMemory: flags.Size{Bytes: 3 << 20},
		Trace: "off", TraceSample: 1, LogLevel: "warn", LogFormat: "text"}}
	inv := &process.Invocation{Stdout: &process.Results{W: &strings.Builder{}}, Stderr: &strings.Builder{}, Env: testEnv()}
	s, err := set.OpenForTokens(t.Context(), inv)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stats := func() *actors.Stats {
		st, err := s.Engine.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	options := bench.Options{PromptTokens: []int{5}, GenTokens: 30, Sequences: []int{1}, Repeat: 1, Cold: true}
	h := &bench.Host{Now: inv.Env.Now, Memory: inv.Env.Memory, FreeMemory: func() (int64, error) { return 0, nil }, Note: inv.Say}
	// A guess may still be read when the run ends, and end before the test looks: then both have
	// counted something else, and the run is repeated.
	var before, after *actors.Stats
	var r *bench.Result
	for range 10 {
		// Otherwise a run may find all in memory.
		if err := s.Engine.ForgetExperts(t.Context()); err != nil {
			t.Fatal(err)
		}
		before = stats()
		if r, err = bench.Runs(t.Context(), h, toMeasure(s, set), options, nil); err != nil {
			t.Fatal(err)
		}
		after = stats()
		if run := r.Cases[0].Runs[0]; run.Prefill.Reads+run.Decode.Reads == after.Reads.Ended-before.Reads.Ended {
			break
		}
	}
	text := r.Text()

	sum := func(of func(l *stages.LayerStats) int64) (n int64) {
		for i := range after.Layers {
			n += of(&after.Layers[i]) - of(&before.Layers[i])
		}
		return n
	}
	hits, misses := sum(func(l *stages.LayerStats) int64 { return l.Hits }), sum(func(l *stages.LayerStats) int64 { return l.Misses })
	used := sum(func(l *stages.LayerStats) int64 { return l.PrefetchHit + l.PrefetchLate })
	if misses < 10 || used < 1 {
		t.Fatalf("%d misses and %d experts used that were read ahead; the test needs more", misses, used)
	}
	for _, c := range []struct {
		name string
		want int64
	}{
		{`: (\d+) reads?\b`, after.Reads.Ended - before.Reads.Ended},
		{`(\d+) ahead`, after.Reads.Speculative - before.Reads.Speculative},
		{`(\d+) hurried`, after.Reads.Hurried - before.Reads.Hurried},
		{`(\d+) begun`, sum(func(l *stages.LayerStats) int64 { return l.PrefetchIssued })},
		{`(\d+) used`, used},
		{`(\d+) of them late`, sum(func(l *stages.LayerStats) int64 { return l.PrefetchLate })},
		{`(\d+) unused`, sum(func(l *stages.LayerStats) int64 { return l.PrefetchWasted })},
		{`(\d+) dropped`, sum(func(l *stages.LayerStats) int64 { return l.PrefetchDropped })},
		{`(\d+) declined`, sum(func(l *stages.LayerStats) int64 { return l.PrefetchDeclined })},
		{`(\d+) skipped`, sum(func(l *stages.LayerStats) int64 { return l.PrefetchSkipped })},
	} {
		printed := int64(0) // of prompts and decoding
		for _, m := range regexp.MustCompile(c.name).FindAllStringSubmatch(text, -1) {
			n, err := strconv.ParseInt(m[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			printed += n
		}
		if printed != c.want {
			t.Errorf("%s: printed %d, the engine counted %d\n%s", c.name, printed, c.want, text)
		}
	}
	all := r.Cases[0].Prefill.Totals
	all.Add(&r.Cases[0].Decode.Totals)
	if want := float64(hits-used) / float64(hits+misses); all.ExpertKeptRate != want || all.ExpertHitRate != float64(hits)/float64(hits+misses) {
		t.Errorf("hits %g, kept %g; want %d and %d of %d", all.ExpertHitRate, all.ExpertKeptRate, hits, hits-used, hits+misses)
	}
	for _, s := range []*bench.Summary{&r.Cases[0].Prefill, &r.Cases[0].Decode} {
		if want := fmt.Sprintf("%7.1f%%%7.1f%%%12s\n", 100*s.ExpertHitRate, 100*s.ExpertKeptRate, figures.Bytes(s.BytesRead)); !strings.Contains(text, want) {
			t.Errorf("the table lacks %q\n%s", want, text)
		}
	}
	if read := sum(func(l *stages.LayerStats) int64 { return l.BytesRead }); all.BytesRead != read {
		t.Errorf("%d bytes read, want %d", all.BytesRead, read)
	}
	// One run of one text: columns that would say nothing are not there.
	for _, name := range []string{"texts", "min", "max", "memory"} {
		if regexp.MustCompile(`(?m)^part.*\b` + name + `\b`).MatchString(text) {
			t.Errorf("a column %s without content\n%s", name, text)
		}
	}
}

// TestBenchForget begins every run with empty slots, and refuses where experts are mapped.
func TestBenchForget(t *testing.T) {
	args := []string{"--prompt-tokens", "1", "--gen-tokens", "1", "--repeat", "2", "--warmup", "40", "--expert-io", "buffered", "--prefetch", "off"}
	warm := mustBench(t, benchEnv(), args...)
	cold := mustBench(t, benchEnv(), append(args, "--forget")...)
	if w, c := warm.Cases[0].Prefill, cold.Cases[0].Prefill; c.ExpertHits != 0 || c.ExpertMisses == 0 || w.ExpertHits == 0 || cold.State != bench.StateForgot {
		t.Errorf("%d hits and %d misses after a warm-up, %d and %d with --forget (%s); want no hits with it", w.ExpertHits, w.ExpertMisses, c.ExpertHits, c.ExpertMisses, cold.State)
	}
	o := callWith(t.Context(), benchEnv(), "", "bench", "--forget", "--expert-io", "mmap", "--gen-tokens", "1", "--repeat", "1", "--warmup", "0")
	if o.code != exitUsage || !strings.Contains(o.stderr, "--forget needs expert slots") {
		t.Errorf("mapped experts: exit %d, stderr %q", o.code, o.stderr)
	}
}
