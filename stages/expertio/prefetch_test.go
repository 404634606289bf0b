package expertio

import (
	"math"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/expertio/policy"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// reader is a core whose reads end when the test says so.
type reader struct {
	t   *testing.T
	c   *Core
	out stages.Outbox
	now int64
}

func newReader(t *testing.T, cfg Config) *reader {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &reader{t: t, c: c, now: 1, out: stages.Outbox{Log: record.NewLog(1 << 16)}}
}

// step gives the core a message that was sent so many nanoseconds after the one before, and returns
// what it wants to be read.
func (r *reader) step(m stages.Message, after int64) []stages.Read {
	r.t.Helper()
	r.now += after
	m.Head().SentNS, r.out.NowNS = r.now, r.now
	r.out.Reset()
	if err := r.c.Step(m, &r.out); err != nil {
		r.t.Fatal(err)
	}
	var reads []stages.Read
	for _, g := range r.out.Reads {
		reads = append(reads, g.Reads...)
	}
	return reads
}

// hint predicts and returns the experts that are read.
func (r *reader) hint(layer, ahead int, experts []int32, chances []float32) ([]int32, []stages.Read) {
	r.t.Helper()
	step := stages.Step{ID: 1, Layer: layer, Batch: &stages.Batch{Rows: make([]stages.Row, 1), Segments: []stages.Segment{{Rows: 1}}, Costs: make([]stages.Cost, 1)}}
	reads := r.step(&stages.PrefetchExperts{Step: step, Ahead: ahead, Experts: experts, Chances: chances}, 0)
	var got []int32
	for _, rd := range reads {
		got = append(got, int32(rd.Expert))
	}
	return got, reads
}

// end ends reads, one after the other, each after so many nanoseconds.
func (r *reader) end(reads []stages.Read, each int64) {
	r.t.Helper()
	for _, rd := range reads {
		r.step(&stages.ExpertsRead{Results: []stages.ReadResult{{Slot: rd.Slot, Gen: rd.Gen}}}, each)
	}
}

// TestWorth predicts experts before there is experience: time suffices, and what is wasted costs a
// quarter of a read, so a chance of more than one in five is worth it.
func TestWorth(t *testing.T) {
	r := newReader(t, Config{Layers: 1, Experts: 16, Slots: 8, WaveSlots: 2, RingDepth: 1})
	got, _ := r.hint(0, 0, []int32{5, 3, 9, 1}, []float32{0.9, 0.21, 0.19, 0.1})
	if !slices.Equal(got, []int32{5, 3}) {
		t.Errorf("experts %v are read, want 5 and 3", got)
	}
	if st := r.c.layers[0]; st.PrefetchIssued != 2 || st.PrefetchDeclined != 2 {
		t.Errorf("%+v, want 2 reads issued and 2 declined", st)
	}
}

// TestRoom teaches the core that a read takes 1 ms and that layer 2 is due 3.5 ms after it was
// predicted: three reads and half a one fit, less those under way, and half a read must be likely
// to be worth it.
func TestRoom(t *testing.T) {
	const ms = 1_000_000
	r := newReader(t, Config{Layers: 3, Experts: 32, Slots: 64, WaveSlots: 2, RingDepth: 1})
	some := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	sure := []float32{0.99, 0.99, 0.99, 0.99, 0.99, 0.99, 0.99, 0.99, 0.99, 0.99}
	_, reads := r.hint(2, 1, some, sure)
	if len(reads) != 10 {
		t.Fatalf("%d reads without experience, want all 10", len(reads))
	}
	r.end(reads[:3], 1*ms)
	r.now += ms / 2
	due := &stages.LayerRouted{Step: stages.Step{ID: 1, Layer: 2, Batch: &stages.Batch{Rows: make([]stages.Row, 1), Segments: []stages.Segment{{Rows: 1}}, Costs: make([]stages.Cost, 1)}}}
	due.SentNS = r.now
	r.c.pace.tick(due.Head())
	r.c.pace.routed(due, 0)
	r.end(reads[3:], ms/2) // 10 reads in 7 ms
	p := &r.c.pace
	hint := &stages.PrefetchExperts{Step: stages.Step{ID: 2, Layer: 2}, Ahead: 1}
	if got, want := p.room(hint, due0(), p.reads), 3.5/0.7; math.Abs(got-want) > 1e-9 {
		t.Fatalf("room for %v reads, want %v", got, want)
	}
	p.reads = 3
	if got := p.room(hint, due0(), p.reads); math.Abs(got-2) > 1e-9 {
		t.Fatalf("room for %v reads with 3 under way, want 2", got)
	}
	p.reads = 0
	p.layers[0].misses[0], p.layers[1].misses[0] = 1, 1.5
	if got := p.room(hint, due0(), p.reads); math.Abs(got-3.5) > 1e-9 {
		t.Fatalf("room for %v reads, the layer before taking 1.5, want 3.5", got)
	}
	hint.Ahead = 2
	p.layers[2].lead[0][2] = 7e6
	if got := p.room(hint, due0(), p.reads); math.Abs(got-7.5) > 1e-9 {
		t.Fatalf("room for %v reads, the layers before taking 1 and 1.5, want 7.5", got)
	}
	// Now by the core itself: room for 2.5 reads takes two at a chance of a half, and the third
	// only for a good one.
	p.layers[0].misses[0], p.layers[1].misses[0] = 0, 0
	p.layers[2].lead[0][1] = 2.5 * 0.7e6
	got, reads := r.hint(2, 1, []int32{20, 21, 22, 23}, []float32{0.5, 0.5, 0.3, 0.3})
	if !slices.Equal(got, []int32{20, 21}) {
		t.Errorf("experts %v are read, want 20 and 21", got)
	}
	r.end(reads, 0)
	p.reads = 0
	got, _ = r.hint(2, 1, []int32{24, 25, 26, 27}, []float32{0.9, 0.9, 0.9, 0.9})
	if !slices.Equal(got, []int32{24, 25, 26}) {
		t.Errorf("experts %v are read, want 24 to 26", got)
	}
}

func due0() due { return due{} }

// TestDemandPutsOff has a layer miss four experts, which is more than it usually does. That leaves
// no less room for guesses about the next layer, which comes so much later; guesses under way do.
func TestDemandPutsOff(t *testing.T) {
	r := newReader(t, Config{Layers: 2, Experts: 32, Slots: 64, WaveSlots: 2, RingDepth: 1})
	p := &r.c.pace
	p.done, p.busy, p.layers[1].lead[0][1] = fewReads, fewReads*1e6, 2e6
	b := &stages.Batch{Rows: make([]stages.Row, 1), Segments: []stages.Segment{{Rows: 1}}, Costs: make([]stages.Cost, 1)}
	plan := &stages.RoutePlan{TopK: 4, Picks: []int32{0, 1, 2, 3}, Weights: make([]float32, 4)}
	for i := range 4 {
		plan.Uses = append(plan.Uses, stages.ExpertUse{Expert: int32(i), Pairs: []int32{int32(i)}})
	}
	if reads := r.step(&stages.LayerRouted{Step: stages.Step{ID: 1, Batch: b}, Plan: plan}, 1); len(reads) != 4 {
		t.Fatalf("%d reads on demand, want 4", len(reads))
	}
	p.layers[0].misses[0] = 0
	for _, want := range [][]int32{{20, 21}, nil} {
		if got, _ := r.hint(1, 1, []int32{20, 21, 22}, []float32{0.9, 0.9, 0.9}); !slices.Equal(got, want) {
			t.Errorf("experts %v are read, want %v", got, want)
		}
	}
}

// TestLikelierStays fills a pool with predicted experts: less likely ones do not push them out,
// likelier ones do, and what is pushed out unused is wasted.
func TestLikelierStays(t *testing.T) {
	r := newReader(t, Config{Layers: 2, Experts: 8, Slots: 4, WaveSlots: 1, RingDepth: 1})
	_, reads := r.hint(1, 1, []int32{0, 1, 2}, []float32{0.6, 0.6, 0.6})
	r.end(reads, 0)
	_, reads = r.hint(1, 1, []int32{3}, []float32{0.6})
	r.end(reads, 0)
	if got, _ := r.hint(1, 1, []int32{4}, []float32{0.5}); got != nil {
		t.Errorf("experts %v push likelier ones out", got)
	}
	got, reads := r.hint(1, 1, []int32{5}, []float32{0.8})
	if !slices.Equal(got, []int32{5}) {
		t.Errorf("experts %v are read, want 5", got)
	}
	r.end(reads, 0)
	st := r.c.layers[1]
	if st.PrefetchIssued != 5 || st.PrefetchWasted != 1 || st.PrefetchDropped != 1 {
		t.Errorf("%+v, want 5 issued, 1 wasted, 1 dropped", st)
	}
}

// TestPausedLayer wants no reads of a layer that is paused, and of others as before.
func TestPausedLayer(t *testing.T) {
	r := newReader(t, Config{Layers: 2, Experts: 8, Slots: 8, WaveSlots: 1, RingDepth: 1})
	r.c.pauses[0][policy.Ordinary].left = 1
	if got, _ := r.hint(0, 0, []int32{0}, []float32{0.9}); got != nil {
		t.Errorf("experts %v are read in a pause", got)
	}
	if got, _ := r.hint(1, 1, []int32{0}, []float32{0.9}); !slices.Equal(got, []int32{0}) {
		t.Errorf("experts %v are read of another layer, want 0", got)
	}
	if r.c.layers[0].PrefetchSkipped != 1 {
		t.Errorf("%+v, want 1 skipped", r.c.layers[0])
	}
}

// TestPausesOfSides lets guesses for a prompt go to waste. That pauses those for prompts, and not
// those for texts that decode, and the other way round.
func TestPausesOfSides(t *testing.T) {
	for _, urgent := range []bool{false, true} {
		r := newReader(t, Config{Layers: 1, Experts: 16, Slots: 8, WaveSlots: 1, RingDepth: 1})
		guess := func(urgent bool, e int32) (reads []stages.Read) {
			b := &stages.Batch{Rows: make([]stages.Row, 1), Urgent: urgent}
			return r.step(&stages.PrefetchExperts{Step: stages.Step{ID: 1, Batch: b}, Experts: []int32{e}, Chances: []float32{0.9}}, 0)
		}
		for e := range int32(fewWasted) {
			for _, rd := range guess(urgent, e) { // a read that fails is of no use
				r.step(&stages.ExpertsRead{Results: []stages.ReadResult{{Slot: rd.Slot, Gen: rd.Gen, Err: stages.ErrClosed}}}, 1)
			}
		}
		b := &stages.Batch{Rows: make([]stages.Row, pauseRows), Segments: []stages.Segment{{Rows: pauseRows}}, Costs: make([]stages.Cost, 1), Urgent: urgent}
		plan := &stages.RoutePlan{TopK: 1, Picks: make([]int32, pauseRows), Weights: make([]float32, pauseRows), Uses: []stages.ExpertUse{{Expert: 15, Pairs: make([]int32, pauseRows)}}}
		r.step(&stages.LayerRouted{Step: stages.Step{ID: 2, Batch: b}, Plan: plan}, 1)
		if got := guess(urgent, 10); len(got) != 0 {
			t.Errorf("urgent %v: %v is read in a pause", urgent, got)
		}
		if !urgent {
			if got := guess(true, 11); len(got) != 1 {
				t.Errorf("guesses for urgent steps pause too: %+v", r.c.pauses[0])
			}
		} else if p := r.c.pauses[0]; p[policy.Ordinary].on() || !p[policy.Urgent].on() {
			t.Errorf("%+v, want a pause of urgent ones alone", p)
		}
	}
}

// TestFailedUnused counts a speculative read that fails before anybody wants it as wasted.
func TestFailedUnused(t *testing.T) {
	r := newReader(t, Config{Layers: 1, Experts: 8, Slots: 8, WaveSlots: 1, RingDepth: 1})
	_, reads := r.hint(0, 0, []int32{0}, []float32{0.9})
	r.step(&stages.ExpertsRead{Results: []stages.ReadResult{{Slot: reads[0].Slot, Gen: reads[0].Gen, Err: stages.ErrClosed}}}, 1)
	if st := r.c.layers[0]; st.PrefetchIssued != 1 || st.PrefetchWasted != 1 {
		t.Errorf("%+v, want 1 issued and 1 wasted", st)
	}
}

// TestBadHints gives the core hints that cannot be.
func TestBadHints(t *testing.T) {
	for _, m := range []*stages.PrefetchExperts{
		{Step: stages.Step{Layer: 2}}, {Step: stages.Step{Layer: -1}}, {Ahead: -1},
		{Experts: []int32{1}}, {Chances: []float32{1}}, {Experts: []int32{8}, Chances: []float32{1}}, {Experts: []int32{-1}, Chances: []float32{1}},
		{Experts: []int32{1}, Chances: []float32{0}}, {Experts: []int32{1}, Chances: []float32{1.01}},
		{Experts: []int32{1}, Chances: []float32{float32(math.NaN())}},
	} {
		c, err := New(Config{Layers: 2, Experts: 8, Slots: 4, WaveSlots: 2, RingDepth: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Step(m, new(stages.Outbox)); err == nil {
			t.Errorf("%+v: not refused", m)
		}
	}
}
