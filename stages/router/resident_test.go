package router_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/router"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// routedStep is what a device routes in a step of so many texts: each row takes k experts of each
// layer.
func routedStep(layers, experts, k, texts int) *stages.StepRouted {
	m := &stages.StepRouted{Step: stages.Step{ID: 1, Batch: &stages.Batch{}}}
	for i := range texts {
		m.Batch.Rows = append(m.Batch.Rows, stages.Row{Seq: stages.SeqID(i + 1)})
		m.Batch.Segments = append(m.Batch.Segments, stages.Segment{Seq: stages.SeqID(i + 1), Row: i, Rows: 1})
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range layers * texts {
		for _, e := range r.Perm(experts)[:k] {
			m.Picks = append(m.Picks, int32(e))
		}
	}
	return m
}

// TestCountsInPieces counts a step of many picks piece by piece, or has another message come
// between: figures and records are those of the whole step either way, once.
func TestCountsInPieces(t *testing.T) {
	const layers, experts, k, texts = 6, 64, 8, 40
	of := routedStep(layers, experts, k, texts)
	want := make([]stages.LayerStats, layers)
	for layer := range want {
		want[layer].Uses = make([]int64, experts)
		for _, e := range of.Picks[layer*texts*k:][:texts*k] {
			want[layer].Uses[e]++
		}
		for _, n := range want[layer].Uses {
			want[layer].Hits += min(n, 1)
		}
	}
	for pieces := range layers + 1 { // 320 picks a layer: each is a piece
		c := router.New(router.Config{Layers: layers, Experts: experts, TopK: k})
		var out stages.Outbox
		out.Log = record.NewLog(1 << 20)
		step := func(m stages.Message) (more bool) {
			t.Helper()
			out.Reset()
			if err := c.Step(m, &out); err != nil {
				t.Fatal(err)
			}
			for _, s := range out.Sends {
				_, count := s.Msg.(*stages.CountPicks)
				more = more || count && s.To == stages.Router
			}
			out.Spent().Handled(m)
			return more
		}
		m := out.Spent().StepRouted(of.Step, len(of.Picks))
		copy(m.Picks, of.Picks)
		more := step(m)
		copy(out.Spent().StepRouted(of.Step, len(of.Picks)).Picks, make([]int32, len(of.Picks))) // in the message's memory
		for i := range pieces {
			if !more {
				t.Fatalf("after %d pieces there is no more", i)
			}
			more = step(out.Spent().CountPicks())
		}
		if want := pieces < layers; more != want {
			t.Fatalf("after %d pieces there is more: %t, want %t", pieces, more, want)
		}
		stats := &stages.CollectStats{Stats: new(stages.Stats)}
		step(stats)
		for layer, got := range stats.Stats.Layers {
			if got.Hits != want[layer].Hits || !slices.Equal(got.Uses, want[layer].Uses) {
				t.Errorf("after %d more pieces layer %d has %d hits and uses %v, want %d and %v", pieces, layer, got.Hits, got.Uses, want[layer].Hits, want[layer].Uses)
			}
		}
		if step(out.Spent().CountPicks()) {
			t.Errorf("after %d more pieces and a message there is more to count", pieces)
		}
		var cursor record.Cursor
		var rows, hits int64
		out.Log.Uses.Read(&cursor, func(uses []record.Use) {
			for i := range uses {
				rows, hits = rows+int64(uses[i].Rows), hits+1
			}
		})
		if rows != layers*texts*k || hits != total(want) {
			t.Errorf("%d uses by %d picks are recorded, want %d by %d", hits, rows, total(want), layers*texts*k)
		}
	}
}

func total(layers []stages.LayerStats) (hits int64) {
	for i := range layers {
		hits += layers[i].Hits
	}
	return hits
}

// BenchmarkStepRouted counts what a device has routed in a step of 32 texts, 48 layers of 128
// experts of which each row takes 8, with records.
func BenchmarkStepRouted(b *testing.B) {
	const layers, experts, k, texts = 48, 128, 8, 32
	c := router.New(router.Config{Layers: layers, Experts: experts, TopK: k})
	of := routedStep(layers, experts, k, texts)
	var out stages.Outbox
	out.Log = record.NewLog(64 << 20)
	for b.Loop() {
		m := out.Spent().StepRouted(of.Step, len(of.Picks))
		copy(m.Picks, of.Picks)
		for in := stages.Message(m); in != nil; {
			if err := c.Step(in, &out); err != nil {
				b.Fatal(err)
			}
			out.Spent().Handled(in)
			in = nil
			if len(out.Sends) > 0 {
				in = out.Sends[0].Msg
			}
			out.Reset()
		}
	}
}
