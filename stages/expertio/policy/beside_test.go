package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/io/synth"
	"github.com/moeflux/moeflux-actor/stages/expertio/policy"
)

// beside puts a prompt, in chunks of some rows, beside the tokens of a text that decodes: after
// each layer of the prompt come a few tokens.
func (t *trace) beside(prompt *trace, chunk, each int) *trace {
	out, n := *t, 0
	out.visits = nil
	for at := 0; at+chunk <= prompt.tokens(); at += chunk {
		for _, v := range prompt.part(at, at+chunk).together() {
			out.visits = append(out.visits, v)
			out.visits = append(out.visits, t.part(n, n+each).visits...)
			n += each
		}
	}
	return &out
}

func (t *trace) tokens() int { return len(t.visits) / t.layers }

// second is the outcome of a trace's second half, with what the first half has left behind.
func second(t *trace, slots int, make func() contender) outcome {
	first := *t
	first.visits = t.visits[:len(t.visits)/2]
	a, b := simulate(&first, slots, nil, make()), simulate(t, slots, nil, make())
	return outcome{hits: b.hits - a.hits, uses: b.uses - a.uses, decodeHits: b.decodeHits - a.decodeHits, decodeUses: b.decodeUses - a.decodeUses}
}

// TestBeside lets a text decode beside prompts of 512 rows. With slots for a quarter of the experts
// and more it hits nearly as often as alone, and the prompt nearly as often as it can at best. If
// the rows of the prompt count, both lose. (For 10 % a layer of a prompt alone needs nearly all
// slots.)
func TestBeside(t *testing.T) {
	const layers, chunk = 12, 512
	s, err := synth.Named("qwen3-30b-a3b")
	if err != nil {
		t.Fatal(err)
	}
	m, err := synth.New(synth.Options{Shape: s, Layers: layers, Seed: 1, Route: synth.Mild})
	if err != nil {
		t.Fatal(err)
	}
	c := m.Config()
	for _, each := range []int{1, 4} {
		const chunks = 6
		n := layers * chunks * each
		tr := &trace{layers: layers, experts: c.NumExperts, topK: c.NumExpertsPerTok}
		for _, id := range m.Chain(n + chunks*chunk) {
			for at, l := range m.Routing(id) {
				tr.add(at, l.Experts)
			}
		}
		text := tr.part(0, n)
		both := text.beside(tr.part(n, n+chunks*chunk), chunk, each)
		var b strings.Builder
		fmt.Fprintf(&b, "%d tokens for each layer of a prompt; hits of the text alone, beside a prompt, of the prompt\n", each)
		for _, share := range capacities {
			slots := int(share * float64(tr.keys()))
			kept := func() contender { return newOrder(tr, 0) }
			alike := func() contender { o := newOrder(tr, 0); o.alike = true; return o }
			alone, beside, counted := second(text, slots, kept), second(both, slots, kept), second(both, slots, alike)
			best := second(both, slots, func() contender { return newOptimum(both) })
			fmt.Fprintf(&b, "%3.0f %%: %.1f, %.1f, %.1f; if its rows count: %.1f, %.1f; optimum %.1f, %.1f\n", 100*share,
				alone.decode(), beside.decode(), beside.prompt(), counted.decode(), counted.prompt(), best.decode(), best.prompt())
			if share > 0.2 && beside.decode() < alone.decode()-0.75/share {
				t.Errorf("%.0f %%: beside a prompt %.1f %% of uses hit, alone %.1f", 100*share, beside.decode(), alone.decode())
			}
			if beside.prompt() < counted.prompt()-1 || beside.decode() < counted.decode() {
				t.Errorf("%.0f %%: hits %.1f, %.1f; %.1f, %.1f if its rows count", 100*share, beside.decode(), beside.prompt(), counted.decode(), counted.prompt())
			}
		}
		t.Log(b.String())
	}
}

// What one side expects, the other side does not end.
func TestSidesExpectForThemselves(t *testing.T) {
	for _, side := range []policy.Side{policy.Ordinary, policy.Urgent} {
		other := policy.Urgent - side
		o := newTest(t, policy.Config{Layers: 1, Experts: 2})
		first := func(want int, when string) {
			t.Helper()
			if got, ok := o.Next(); !ok || got != want {
				t.Errorf("side %d: expert %d (%v) would leave %s, want %d", side, got, ok, when, want)
			}
		}
		o.Add(0)
		o.Add(1)
		o.Expect(side, 0, 0.5)
		first(1, "while the other is expected")
		o.Visit(other, 0, 1)
		first(1, "after a visit of the other side")
		o.Hold(other, 0)
		o.Add(0)
		first(1, "after the other side has had the expected one")
		o.Expect(other, 1, 1)
		first(0, "when the other side expects it more")
		o.Visit(other, 0, 1)
		first(1, "after that side's visit")
		o.Hold(side, 0)
		o.Add(0)
		first(0, "when nothing is expected any more")
	}
}
