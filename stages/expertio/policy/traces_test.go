package policy_test

import (
	"context"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/demo"
	"github.com/moeflux/moeflux-actor/io/synth"
)

// synthTrace routes tokens of a synthetic model's chain, one by one.
func synthTrace(tb testing.TB, shape string, route synth.Route, tokens int) *trace {
	tb.Helper()
	s, err := synth.Named(shape)
	if err != nil {
		tb.Fatal(err)
	}
	m, err := synth.New(synth.Options{Shape: s, Seed: 1, Route: route})
	if err != nil {
		tb.Fatal(err)
	}
	c := m.Config()
	t := &trace{name: shape + ", " + string(route), layers: len(c.MoELayers()), experts: c.NumExperts, topK: c.NumExpertsPerTok}
	for _, id := range m.Chain(tokens) {
		for at, l := range m.Routing(id) {
			t.add(at, l.Experts)
		}
	}
	return t
}

// add appends the visit of one row.
func (t *trace) add(layer int, picks []int32) {
	v := visit{layer: layer, rows: 1}
	for _, e := range slices.Sorted(slices.Values(picks)) {
		v.uses = append(v.uses, use{key: int32(layer*t.experts) + e, rows: 1})
	}
	t.visits = append(t.visits, v)
}

// demoTrace is what the routers of the demo model, which is a trained one, pick for texts of 2,048
// tokens of source code that it was not trained on.
func demoTrace(tb testing.TB, texts int) *trace {
	tb.Helper()
	const length = 2048
	ctx := context.Background()
	dir, err := demo.Dir(ctx, tb.TempDir(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	ref, err := demo.Reference()
	if err != nil {
		tb.Fatal(err)
	}
	dev, err := host.New(host.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	defer dev.Close()
	e, err := actors.Open(ctx, actors.Config{Model: dir, Device: dev})
	if err != nil {
		tb.Fatal(err)
	}
	defer e.Close(context.Background())
	s, err := e.NewSequence(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	c := e.Model()
	t := &trace{name: "demo model", layers: len(c.MoELayers()), experts: c.NumExperts, topK: e.Info().TopK}
	for i := range texts {
		if err := s.Reset(ctx); err != nil {
			tb.Fatal(err)
		}
		r, err := s.EvalChunk(ctx, actors.Chunk{Tokens: ref.EvalIDs[i*length : (i+1)*length], Logits: actors.NoLogits, Routing: true})
		if err != nil {
			tb.Fatal(err)
		}
		for row := range r.Rows {
			for at := range t.layers {
				i := (at*r.Rows + row) * t.topK
				t.add(at, r.Picks[i:i+t.topK])
			}
		}
	}
	return t
}

// withPrompts turns stretches of a trace of single rows into prompts in chunks, with decoded tokens
// between them.
func (t *trace) withPrompts(decode, prompt, chunk int) *trace {
	out := *t
	out.name += ", with prompts"
	out.visits = nil
	tokens := len(t.visits) / t.layers
	for at := 0; at < tokens; {
		end := min(tokens, at+decode)
		out.visits = append(out.visits, t.part(at, end).visits...)
		for at = end; at < min(tokens, end+prompt); {
			rows := min(chunk, tokens-at, end+prompt-at)
			out.visits = append(out.visits, t.part(at, at+rows).together()...)
			at += rows
		}
	}
	return &out
}

// together returns the trace's tokens as one step of many rows.
func (t *trace) together() []visit {
	rows := len(t.visits) / t.layers
	var out []visit
	for at := range t.layers {
		count := make([]int32, t.experts)
		for row := range rows {
			for _, u := range t.visits[row*t.layers+at].uses {
				count[int(u.key)-at*t.experts]++
			}
		}
		v := visit{layer: at, rows: rows}
		for e, n := range count {
			if n > 0 {
				v.uses = append(v.uses, use{key: int32(at*t.experts + e), rows: n})
			}
		}
		out = append(out, v)
	}
	return out
}

// hottest returns the n most used experts of a trace, most used first, and the smaller key first
// among equals.
func (t *trace) hottest(n int) []int32 {
	counts := t.counts()
	keys := make([]int32, t.keys())
	for k := range keys {
		keys[k] = int32(k)
	}
	slices.SortStableFunc(keys, func(a, b int32) int { return int(counts[b] - counts[a]) })
	return keys[:min(n, len(keys))]
}

// counts returns the uses of every expert.
func (t *trace) counts() []int32 {
	counts := make([]int32, t.keys())
	for _, v := range t.visits {
		for _, u := range v.uses {
			counts[u.key] += u.rows
		}
	}
	return counts
}
