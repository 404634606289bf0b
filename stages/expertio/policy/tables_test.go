package policy_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/io/synth"
)

// full measures all traces at full length: go test -v -run Tables -timeout 30m
// ./stages/expertio/policy -args -full
var full = flag.Bool("full", false, "measure all traces at full length")

// capacities are shares of all experts.
var capacities = []float64{0.10, 0.25, 0.50, 0.75}

// row is a policy of a table.
type row struct {
	name string
	warm func(t *trace, slots int) []int32 // nil for none
	make func(t *trace, slots int) contender
}

const (
	rowOptimum = "optimum, knows the future"
	rowLRU     = "LRU"
	rowChosen  = "expected wait, half-life 6 or 64, popularity (kept)"
)

// rows returns the policies. Those that pin experts learn them from the trace learnt, and are left
// out if it is nil.
func rows(learnt *trace) []row {
	out := []row{
		{rowOptimum, nil, func(t *trace, _ int) contender { return newOptimum(t) }},
		{rowLRU, nil, func(*trace, int) contender { return newLRU() }},
		{"random", nil, func(*trace, int) contender { return &chance{rand: rand.New(rand.NewPCG(1, 2))} }},
		{"LRU, a share for each layer", nil, func(t *trace, n int) contender { return newLayerLRU(t, n) }},
		{"LRU-2", nil, func(t *trace, _ int) contender { return newLRU2(t.keys()) }},
		{"SIEVE", nil, func(*trace, int) contender { return newSieve() }},
		{"S3-FIFO", nil, func(_ *trace, n int) contender { return newS3FIFO(n) }},
		{"ARC", nil, func(_ *trace, n int) contender { return newARC(n) }},
		{rowChosen, nil, func(t *trace, _ int) contender { return newOrder(t, 0) }},
	}
	for _, h := range []float64{4, 8, 16, 64, 256, 1 << 20} {
		name := fmt.Sprintf("the same, half-life %g alone", h)
		if h == 1<<20 {
			name = "the same, no ageing (LFU)"
		}
		out = append(out, row{name, nil, func(t *trace, _ int) contender { return newOrder(t, h) }})
	}
	if learnt != nil {
		half := func(_ *trace, n int) []int32 { return learnt.hottest(n / 2) }
		out = append(out, row{"LRU, half the slots pinned by a profile", half, func(t *trace, n int) contender {
			p := newLRU()
			p.stay = map[int32]bool{}
			for _, k := range half(t, n) {
				p.stay[k] = true
			}
			return p
		}})
	}
	return out
}

// TestTables compares policies on traces and prints the tables with -v. Without -full the traces
// are short.
func TestTables(t *testing.T) {
	for _, tc := range tableTraces(t) {
		t.Run(tc.run.name, func(t *testing.T) { table(t, tc.run, tc.learnt) })
	}
}

// traced is a trace, and a trace of another text by the same model.
type traced struct{ run, learnt *trace }

func tableTraces(t *testing.T) []traced {
	if !*full {
		m := synthTrace(t, "qwen3-30b-a3b", synth.Mild, 192)
		return []traced{{m.part(0, 128), m.part(128, 192)}, {m.withPrompts(24, 72, 24), nil}}
	}
	d := demoTrace(t, 4)
	out := []traced{{d.part(0, 4096), d.part(4096, 8192)}, {d.withPrompts(128, 256, 128), nil}}
	for _, shape := range []string{"qwen3-30b-a3b", "qwen3.5-35b-a3b"} {
		for _, route := range []synth.Route{synth.Mild, synth.Strong, synth.Skew, synth.Uniform} {
			m := synthTrace(t, shape, route, 3072)
			out = append(out, traced{m.part(0, 2048), m.part(2048, 3072)})
			if route == synth.Mild {
				out = append(out, traced{m.withPrompts(128, 256, 128), nil})
			}
		}
	}
	return out
}

// table prints hit rates, and compares the chosen policy with LRU and the optimum.
func table(t *testing.T, tr, learnt *trace) {
	var b strings.Builder
	prompts := strings.Contains(tr.name, "prompts")
	fmt.Fprintf(&b, "\n%s: %d layers of %d experts, top %d, %d visits\n\n| policy |", tr.name, tr.layers, tr.experts, tr.topK, len(tr.visits))
	for _, c := range capacities {
		fmt.Fprintf(&b, " %.0f %% |", 100*c)
	}
	fmt.Fprintf(&b, " ns |\n| --- |%s --- |\n", strings.Repeat(" --- |", len(capacities)))
	results := map[string][]outcome{}
	for _, r := range rows(learnt) {
		fmt.Fprintf(&b, "| %s |", r.name)
		var ns int64
		for i, c := range capacities {
			slots := int(c * float64(tr.keys()))
			var warm []int32
			if r.warm != nil {
				warm = r.warm(tr, slots)
			}
			o := simulate(tr, slots, warm, r.make(tr, slots))
			results[r.name] = append(results[r.name], o)
			ns = max(ns, o.perUse.Nanoseconds())
			best, lru := results[rowOptimum][i], o
			if len(results[rowLRU]) > i {
				lru = results[rowLRU][i]
			}
			if prompts {
				fmt.Fprintf(&b, " %.1f, %.1f |", o.decode(), o.prompt())
				continue
			}
			fmt.Fprintf(&b, " %.1f", o.all())
			// A share of a tiny gap says nothing, and a warm start saves the first reads.
			if best.all()-lru.all() > 0.2 && r.warm == nil {
				fmt.Fprintf(&b, " (%+.0f)", share(o.hits-lru.hits, best.hits-lru.hits))
			}
			b.WriteString(" |")
		}
		fmt.Fprintf(&b, " %d |\n", ns)
	}
	t.Log(b.String())
	for i, c := range capacities {
		best, lru, chosen := results[rowOptimum][i], results[rowLRU][i], results[rowChosen][i]
		for name, o := range results {
			if o[i].hits > best.hits && !strings.Contains(name, "pinned") {
				t.Errorf("%.0f %%: %s hits %d times, more than the optimum's %d", 100*c, name, o[i].hits, best.hits)
			}
		}
		// It may lose a little to a policy that happens to suit the trace.
		if chosen.all() < lru.all()-1 {
			t.Errorf("%.0f %%: the policy kept hits %.1f %%, LRU %.1f", 100*c, chosen.all(), lru.all())
		}
	}
}
