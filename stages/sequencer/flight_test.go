package sequencer

import (
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// TestNext has three steps of four layers wait for their next ones. On one device they take turns;
// on two, each of which has one credit, the oldest goes first, and a younger one begins only on the
// device that has a credit left.
func TestNext(t *testing.T) {
	for _, c := range []struct {
		borders stages.Borders
		want    []stages.StepID // whose layer begins next, each time; those before are with the device
	}{
		{nil, []stages.StepID{6, 5, 7, 6, 5, 7}},
		{stages.Borders{2}, []stages.StepID{5, 5, 5, 5, 6, 6}},
	} {
		f := flight{ring: make([][schedule.Kinds]int, len(c.borders)+1)}
		for _, id := range []stages.StepID{6, 5, 7} {
			f.lanes = append(f.lanes, &step{head: stages.Step{ID: id}, kind: schedule.Decode})
		}
		for i, want := range c.want {
			s, n := f.next(schedule.Decode, 4, func(*step) int { return 1 })
			if s == nil || n != 1 || s.head.ID != want {
				t.Fatalf("borders %v, time %d: %+v and %d layers, want step %d", c.borders, i, s, n, want)
			}
			s.begun++
			s.submitted++
		}
	}
	core := New(Config{Layers: 4, RingDepth: 1, StepsInFlight: 2, ChunkRows: 8, PageRows: 4, Borders: stages.Borders{2}})
	first, second := core.spare.step(3, 2), core.spare.step(3, 2)
	first.begun, first.submitted = 2, 2
	core.flight.ring[1][schedule.Decode] = 1
	if !core.full(first) || core.full(second) {
		t.Errorf("with the second device's credit taken: full %v for it, %v for the first", core.full(first), core.full(second))
	}
}
