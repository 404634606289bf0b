package dispatch

import (
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
)

// stepPicks is a step of texts with some rows each, and what it picked: [layers][rows][k]. Some
// rows could not be routed, some pick one expert again and again.
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
		again := r.IntN(20) == 0 // as a faulty device may
		for _, e := range r.Perm(experts)[:k] {
			if again {
				e = 0
			}
			if r.IntN(100) == 0 {
				e = -1 - e
			}
			picks = append(picks, int32(e))
		}
	}
	return b, picks
}

// Each pick is charged with an equal part of its record, but for what a division leaves over, and
// the parts of a record add up to it: as bytes of a slot where the expert is near, else as bytes of
// the host's memory.
func TestCharge(t *testing.T) {
	for _, texts := range []int{1, 2, 7, 100} {
		for _, far := range []bool{false, true} {
			testCharge(t, texts, far)
		}
	}
}

func testCharge(t *testing.T, texts int, far bool) {
	const layers, experts, k, bytes = 3, 70, 4, 1001
	b, picks := stepPicks(texts, layers, experts, k)
	var near stages.NearSets // all are
	if far {
		near = make(stages.NearSets, layers*stages.NearWords(experts))
		for e := range layers * experts {
			near.Put(e/experts, experts, int32(e%experts), e%3 == 0)
		}
	}
	c := &Core{cfg: Config{TopK: k, RecordBytes: bytes}, picked: newPicked(experts)}
	c.charge(b, &stages.StepRouted{Picks: picks, Near: near})

	want := make([]stages.Cost, texts)
	n := len(b.Rows) * k
	for layer := range layers {
		of := picks[layer*n:][:n]
		all := make(map[int32]int64)
		for _, e := range of {
			all[e]++
		}
		seen := make(map[int32]bool)
		for i, g := range b.Segments {
			for _, e := range of[g.Row*k : (g.Row+g.Rows)*k] {
				if e < 0 {
					continue
				}
				pays := bytes / all[e]
				if !seen[e] {
					seen[e] = true
					pays += bytes % all[e]
				}
				if near.Has(layer, experts, e) {
					want[i].Hit, want[i].SlotBytes = want[i].Hit+1, want[i].SlotBytes+pays
				} else {
					want[i].Missed, want[i].HostBytes = want[i].Missed+1, want[i].HostBytes+pays
				}
			}
		}
	}
	for i, got := range b.Costs {
		if got != want[i] {
			t.Errorf("%d texts, far %t: text %d has %+v, want %+v", texts, far, i, got, want[i])
		}
	}
	var charged, records int64
	for _, cost := range want {
		charged += cost.SlotBytes + cost.HostBytes
	}
	for layer := range layers {
		used := make(map[int32]bool)
		for _, e := range picks[layer*n:][:n] {
			if e >= 0 && !used[e] {
				used[e] = true
				records++
			}
		}
	}
	if charged != records*bytes {
		t.Errorf("%d texts, far %t: charged %d bytes for %d records of %d",
			texts, far, charged, records, bytes)
	}
}

// BenchmarkCharge charges steps of 32 texts with 48 layers, a different step each time: a processor
// learns the branches of a step that it sees again and again.
func BenchmarkCharge(b *testing.B) {
	const layers, experts, k = 48, 128, 8
	batch, _ := stepPicks(32, layers, experts, k)
	steps := make([]*stages.StepRouted, 64)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range steps {
		steps[i] = new(stages.StepRouted)
		for range layers * len(batch.Rows) {
			for _, e := range r.Perm(experts)[:k] {
				steps[i].Picks = append(steps[i].Picks, int32(e))
			}
		}
	}
	c := &Core{cfg: Config{TopK: k, RecordBytes: 2_654_208}, picked: newPicked(experts)}
	n := 0
	for b.Loop() {
		c.charge(batch, steps[n%len(steps)])
		n++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(steps[0].Picks)), "ns/pick")
}
