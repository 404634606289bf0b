package router_test

import (
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/router"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// BenchmarkStepRouted counts what a device has routed in a step of 32 texts, 48 layers of 128
// experts of which each row takes 8, with records.
func BenchmarkStepRouted(b *testing.B) {
	const layers, experts, k, texts = 48, 128, 8, 32
	c := router.New(router.Config{Layers: layers, Experts: experts, TopK: k})
	m := stages.StepRouted{Step: stages.Step{ID: 1, Batch: &stages.Batch{}}}
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
	var out stages.Outbox
	out.Log = record.NewLog(64 << 20)
	for b.Loop() {
		if err := c.Step(&m, &out); err != nil {
			b.Fatal(err)
		}
		out.Reset()
	}
}
