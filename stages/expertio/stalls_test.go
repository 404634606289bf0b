package expertio

import (
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/expertio/policy"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// routed is a plan for a step of one row.
func routed(id stages.StepID, urgent bool, experts ...int32) *stages.LayerRouted {
	b := &stages.Batch{Rows: make([]stages.Row, 1), Segments: []stages.Segment{{Rows: 1}}, Costs: make([]stages.Cost, 1), Urgent: urgent}
	p := &stages.RoutePlan{TopK: len(experts)}
	for i, e := range experts {
		p.Uses = append(p.Uses, stages.ExpertUse{Expert: e, Pairs: []int32{int32(i)}})
	}
	return &stages.LayerRouted{Step: stages.Step{ID: id, Batch: b}, Plan: p}
}

// home brings a wave home.
func home(m *stages.LayerRouted, slots ...stages.SlotID) *stages.SlotsReleased {
	return &stages.SlotsReleased{Step: m.Step, Slots: slots}
}

// waits wants these waits, and no others.
func (r *reader) waits(want ...record.Wait) {
	r.t.Helper()
	if got := r.out.Log.Recording().Waits; !slices.Equal(got, want) {
		r.t.Errorf("recorded is\n%+v, want\n%+v", got, want)
	}
}

// Step 1 has both slots. Step 2 waits for them, and step 3, whose expert is not even asked for,
// because step 2 is first; step 4 is given up meanwhile.
func TestWaitsForRoom(t *testing.T) {
	r := newReader(t, Config{Layers: 1, Experts: 8, Slots: 2, WaveSlots: 2, RingDepth: 2})
	first, given := routed(1, false, 0, 1), routed(4, false, 5)
	reads := r.step(first, 10)                      // at 11
	r.step(routed(2, false, 2, 3), 10)              // at 21
	r.step(routed(3, false, 4), 10)                 // at 31
	r.step(given, 10)                               // at 41
	r.end(reads, 10)                                // at 51 and 61
	r.step(&stages.DrainStep{Step: given.Step}, 10) // at 71
	wait := record.Wait{Step: 4, For: 2, BeganNS: 41, EndedNS: 71, Layer: 0, Wave: -1, Reason: record.Room}
	r.waits(wait)
	reads = r.step(home(first, reads[0].Slot, reads[1].Slot), 10) // at 81
	if len(reads) != 2 {
		t.Fatalf("%d reads for step 2, want 2", len(reads))
	}
	r.waits(wait, record.Wait{Step: 2, For: 1, BeganNS: 21, EndedNS: 81, Wave: -1, Reason: record.Room})

	// what is urgent waits for slots too when all are in use
	r = newReader(t, Config{Layers: 1, Experts: 8, Slots: 2, WaveSlots: 2, RingDepth: 2})
	reads = r.step(first, 10)      // at 11
	r.step(routed(2, true, 2), 10) // at 21
	r.end(reads, 10)               // at 31 and 41
	r.step(home(first, 0, 1), 10)  // at 51
	r.waits(record.Wait{Step: 2, For: 1, BeganNS: 21, EndedNS: 51, Wave: -1, Reason: record.Room})
}

// One read at a time is allowed. The first of a load is asked for at once, so it waits for the
// last; while an urgent step is under way, that is in its way.
func TestWaitsToRead(t *testing.T) {
	r := newReader(t, Config{Layers: 2, Experts: 8, Slots: 8, WaveSlots: 4, RingDepth: 2, Reads: 1})
	reads := r.step(routed(1, false, 0, 1), 10) // at 11
	r.end(reads, 10)                            // at 21
	r.waits(record.Wait{Step: 1, BeganNS: 11, EndedNS: 21, Wave: -1, Reason: record.ReadCredit})

	r = newReader(t, Config{Layers: 2, Experts: 8, Slots: 8, WaveSlots: 4, RingDepth: 2, Reads: 2})
	urgent := routed(9, true, 7)
	r.step(urgent, 10)                               // at 11
	r.step(routed(1, false, 0, 1), 10)               // at 21
	r.step(&stages.DrainStep{Step: urgent.Step}, 10) // at 31
	r.waits(record.Wait{Step: 1, For: 9, BeganNS: 21, EndedNS: 31, Wave: -1, Reason: record.ReadCredit})
}

// The ring has two places. A third wave waits for both, and so for no one step; a fourth for the
// same step's.
func TestWaitsForTheRing(t *testing.T) {
	r := newReader(t, Config{Layers: 1, Experts: 8, Slots: 8, WaveSlots: 4, RingDepth: 2})
	first, second, third, fourth := routed(1, false, 0), routed(2, false, 1), routed(3, false, 0), routed(4, false, 1)
	r.end(r.step(first, 10), 10)  // at 11 and 21
	r.end(r.step(second, 10), 10) // at 31 and 41
	r.step(third, 10)             // at 51
	r.step(home(first, 0), 10)    // at 61
	r.waits(record.Wait{Step: 3, BeganNS: 51, EndedNS: 61, Wave: 0, Reason: record.WaveCredit})
	r.step(home(second, 1), 10) // at 71

	r = newReader(t, Config{Layers: 1, Experts: 8, Slots: 8, WaveSlots: 4, RingDepth: 1})
	r.end(r.step(first, 10), 10) // at 11 and 21
	r.step(fourth, 10)           // at 31; expert 1 is read
	r.step(third, 10)            // at 41; expert 0 is there
	r.step(home(first, 0), 10)   // at 51
	r.waits(record.Wait{Step: 3, For: 1, BeganNS: 41, EndedNS: 51, Wave: 0, Reason: record.WaveCredit})
}

// The verdict on a guess says what spoke against it.
func TestVerdicts(t *testing.T) {
	r := newReader(t, Config{Layers: 2, Experts: 8, Slots: 3, WaveSlots: 1, RingDepth: 1})
	r.c.pauses[1][policy.Ordinary].left = 1
	_, reads := r.hint(0, 0, []int32{5, 3, 1, 2}, []float32{0.9, 0.8, 0.15, 0.7})
	r.hint(1, 1, []int32{4}, []float32{0.5})
	if len(reads) != 2 {
		t.Fatalf("%d reads, want 2", len(reads))
	}
	want := []record.Verdict{record.Issued, record.Issued, record.Dropped, record.Dropped, record.Skipped}
	var got []record.Verdict
	for _, g := range r.out.Log.Recording().Guesses {
		got = append(got, g.Verdict)
	}
	if !slices.Equal(got, want) {
		t.Errorf("verdicts %v, want %v", got, want)
	}
	r = newReader(t, Config{Layers: 1, Experts: 8, Slots: 8, WaveSlots: 1, RingDepth: 1})
	r.hint(0, 0, []int32{1}, []float32{0.15})
	if g := r.out.Log.Recording().Guesses; len(g) != 1 || g[0].Verdict != record.Declined {
		t.Errorf("recorded is %+v, want one that is declined", g)
	}
}
