package dispatch

import (
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
)

// stepPicks is a step of texts with some rows each, and what it picked: [layers][rows][k]. Some
// rows could not be routed.
func stepPicks(texts, layers, experts, k int) (*stages.Batch, []int32) {
	r := rand.New(rand.NewPCG(1, 2))
	b := new(stages.Batch)
	for range texts {
		rows := 1 + r.IntN(3)
		b.Segments = append(b.Segments, stages.Segment{Row: len(b.Rows), Rows: rows})
		b.Costs = append(b.Costs, stages.Cost{})
		b.Rows = append(b.Rows, make([]stages.Row, rows)...)
	}
	var picks []int32
	for range layers * len(b.Rows) {
		for _, e := range r.Perm(experts)[:k] {
			if r.IntN(100) == 0 {
				e = -1 - e
			}
			picks = append(picks, int32(e))
		}
	}
	return b, picks
}

// Each pick is charged with an equal part of its record, but for what a division leaves over, and
// the parts of a record add up to it.
func TestCharge(t *testing.T) {
	for _, texts := range []int{1, 2, 7, 100} {
		const layers, experts, k, bytes = 3, 16, 4, 1001
		b, picks := stepPicks(texts, layers, experts, k)
		c := &Core{cfg: Config{TopK: k, RecordBytes: bytes}, picked: newPicked(experts)}
		c.charge(b, &stages.StepRouted{Picks: picks})

		hits, least, over := make([]int64, texts), make([]int64, texts), make([]int64, texts)
		var records, charged int64
		n := len(b.Rows) * k
		for ; len(picks) > 0; picks = picks[n:] {
			all := make(map[int32]int64)
			for _, e := range picks[:n] {
				all[e]++
			}
			seen := make(map[int32]bool)
			for i, g := range b.Segments {
				for _, e := range picks[g.Row*k : (g.Row+g.Rows)*k] {
					if e < 0 {
						continue
					}
					hits[i]++
					least[i] += bytes / all[e]
					if !seen[e] {
						seen[e] = true
						over[i] += bytes % all[e]
						records++
					}
				}
			}
		}
		for i, got := range b.Costs {
			if want := (stages.Cost{Hit: hits[i], SlotBytes: least[i] + over[i]}); got != want {
				t.Errorf("%d texts: text %d has %+v, want %+v", texts, i, got, want)
			}
			charged += got.SlotBytes
		}
		if charged != records*bytes {
			t.Errorf("%d texts: charged %d bytes for %d records of %d", texts, charged, records, bytes)
		}
	}
}

// BenchmarkCharge is a step of 128 texts with 48 layers.
func BenchmarkCharge(b *testing.B) {
	const layers, experts, k = 48, 128, 8
	batch, picks := stepPicks(64, layers, experts, k)
	c := &Core{cfg: Config{TopK: k, RecordBytes: 2_654_208}, picked: newPicked(experts)}
	m := &stages.StepRouted{Picks: picks}
	for b.Loop() {
		c.charge(batch, m)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(picks)), "ns/pick")
}
