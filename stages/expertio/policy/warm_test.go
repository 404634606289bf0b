package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/io/profile"
	"github.com/moeflux/moeflux-actor/io/synth"
)

// TestWarmStart measures what a profile of other texts buys in the first 64 tokens of a run that
// begins with empty slots.
func TestWarmStart(t *testing.T) {
	const first = 64
	runs, learning := 2, 192
	var traces []*trace
	if *full {
		runs, learning = 16, 2048
		traces = []*trace{demoTrace(t, 2)}
		for _, shape := range []string{"qwen3-30b-a3b", "qwen3.5-35b-a3b"} {
			for _, route := range []synth.Route{synth.Mild, synth.Uniform} {
				traces = append(traces, synthTrace(t, shape, route, learning+runs*first))
			}
		}
	} else {
		traces = []*trace{synthTrace(t, "qwen3-30b-a3b", synth.Mild, learning+runs*first)}
	}
	var b strings.Builder
	b.WriteString("\n| first 64 tokens, hits of each run's uses |")
	for _, c := range capacities {
		fmt.Fprintf(&b, " %.0f %% |", 100*c)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(capacities)) + "\n")
	for _, tr := range traces {
		p := learn(t, tr.part(0, learning))
		hits := map[string][]float64{}
		names := []string{"LRU, empty", "kept, empty", "kept, half filled first", "kept, filled first", "kept, filled first, and its estimates", "optimum, empty"}
		for _, c := range capacities {
			slots := int(c * float64(tr.keys()))
			sums := make([]float64, len(names))
			for i := range runs {
				run := tr.part(learning+i*first, learning+(i+1)*first)
				seeded := newOrder(tr, 0)
				for k := range tr.keys() {
					seeded.Seed(k, p.Share(k))
				}
				for j, o := range []outcome{
					simulate(run, slots, nil, newLRU()),
					simulate(run, slots, nil, newOrder(tr, 0)),
					simulate(run, slots, keys32(p.Hottest(slots/2)), newOrder(tr, 0)),
					simulate(run, slots, keys32(p.Hottest(slots)), newOrder(tr, 0)),
					simulate(run, slots, keys32(p.Hottest(slots)), seeded),
					simulate(run, slots, nil, newOptimum(run)),
				} {
					sums[j] += o.all() / float64(runs)
				}
			}
			for j, name := range names {
				hits[name] = append(hits[name], sums[j])
			}
		}
		for _, name := range names {
			fmt.Fprintf(&b, "| %s: %s |", tr.name, name)
			for _, h := range hits[name] {
				fmt.Fprintf(&b, " %.1f |", h)
			}
			b.WriteString("\n")
		}
		for i, c := range capacities {
			if cold, warm := hits["kept, empty"][i], hits["kept, filled first, and its estimates"][i]; warm < cold {
				t.Errorf("%s, %.0f %%: with a profile %.1f %% hit, without %.1f", tr.name, 100*c, warm, cold)
			}
		}
	}
	t.Log(b.String())
}

// learn makes a profile of a trace.
func learn(t *testing.T, tr *trace) *profile.Profile {
	t.Helper()
	p, err := profile.New(tr.layers, tr.experts)
	if err != nil {
		t.Fatal(err)
	}
	uses := make([]int64, tr.keys())
	for k, n := range tr.counts() {
		uses[k] = int64(n)
	}
	if err := p.Merge(int64(len(tr.visits)/tr.layers), uses); err != nil {
		t.Fatal(err)
	}
	return p
}

func keys32(keys []int) []int32 {
	var out []int32
	for _, k := range keys {
		out = append(out, int32(k))
	}
	return out
}
