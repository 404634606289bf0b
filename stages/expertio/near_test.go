package expertio_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/expertio"
)

// nearCore is a core of two layers of four experts with three slots in the device's memory. Slots 8
// to 10 are those.
func nearCore(t *testing.T, chances []float64) *expertio.Core {
	t.Helper()
	c, err := expertio.New(expertio.Config{
		Layers: 2, Experts: 4, ExpertBytes: 100, WaveSlots: 4, RingDepth: 1, Mapped: true,
		Near: 3, Chances: chances,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// nearRig is a core and what it has asked for.
type nearRig struct {
	t     *testing.T
	c     *expertio.Core
	reads []stages.Read // not ended
}

// step gives the core a message and returns what it wants moved, as words.
func (r *nearRig) step(m stages.Message) (words []string) {
	r.t.Helper()
	var out stages.Outbox
	if err := r.c.Step(m, &out); err != nil {
		r.t.Fatalf("%T: %v", m, err)
	}
	for _, g := range out.Reads {
		for _, x := range g.Reads {
			words = append(words, fmt.Sprintf("copy %d to %d", x.Layer*4+x.Expert, x.Slot))
			r.reads = append(r.reads, x)
		}
	}
	for _, s := range out.Sends {
		move, ok := s.Msg.(*stages.MoveExperts)
		if !ok || s.To != stages.Dispatch {
			r.t.Errorf("sends %T to %v", s.Msg, s.To)
			continue
		}
		for _, x := range move.Come {
			words = append(words, fmt.Sprintf("%d comes to %d", x.Layer*4+x.Expert, x.Slot))
		}
		for _, x := range move.Leave {
			words = append(words, fmt.Sprintf("%d leaves %d", x.Layer*4+x.Expert, x.Slot))
		}
	}
	return words
}

// copied ends the oldest copy.
func (r *nearRig) copied(err error) []string {
	r.t.Helper()
	x := r.reads[0]
	r.reads = r.reads[1:]
	return r.step(readEnded(x.Slot, x.Gen, err))
}

func readEnded(slot stages.SlotID, gen uint32, err error) *stages.ExpertsRead {
	return &stages.ExpertsRead{Results: []stages.ReadResult{{Slot: slot, Gen: gen, Err: err}}}
}

// used is a step of one row that has used some experts.
func used(keys ...int32) *stages.ExpertsUsed {
	m := &stages.ExpertsUsed{Urgent: true, Rows: 1}
	for _, k := range keys {
		m.Uses = append(m.Uses, stages.KeyUse{Key: k, Rows: 1})
	}
	return m
}

func (r *nearRig) want(got []string, want ...string) {
	r.t.Helper()
	if !slices.Equal(got, want) {
		r.t.Errorf("%q, want %q", got, want)
	}
}

// TestNearMoves follows slots from expert to expert: the free ones are filled at once, then who is
// much likelier takes the slot of the least likely, after the device has left it.
func TestNearMoves(t *testing.T) {
	r := &nearRig{t: t, c: nearCore(t, nil)}
	r.want(r.step(new(stages.WarmSlots)), "copy 0 to 8", "copy 4 to 9", "copy 1 to 10")
	r.want(r.step(used(1, 4)))
	r.want(r.copied(nil), "0 comes to 8")
	r.want(r.copied(nil), "4 comes to 9")
	r.want(r.copied(nil), "1 comes to 10")
	var got []string
	for n := 0; len(got) == 0 && n < 20; n++ { // 2 was never used, and 0 neither
		got = r.step(used(2, 4))
	}
	r.want(got, "0 leaves 8")
	r.want(r.step(used(2, 4))) // its slot is to be vacated first
	r.want(r.step(&stages.SlotsVacated{Slots: []stages.SlotID{8}}), "copy 2 to 8")
	r.want(r.copied(nil), "2 comes to 8")
	for range 5 { // likelier, but not by much: it stays far
		r.want(r.step(used(1, 4)))
		r.want(r.step(used(2, 4)))
	}
	s := &stages.Stats{Layers: make([]stages.LayerStats, 2)}
	var out stages.Outbox
	if err := r.c.Step(&stages.CollectStats{Stats: s}, &out); err != nil {
		t.Fatal(err)
	}
	l := s.Layers
	got = []string{
		fmt.Sprint(l[0].Places, l[1].Places), fmt.Sprint(s.Slots, s.SlotsUsed),
		fmt.Sprint(l[0].Evictions, l[0].BytesRead, s.Accounts.Nobody.HostBytes),
	}
	if want := []string{"[0 2 2 0] [2 0 0 0]", "3 3", "1 300 400"}; !slices.Equal(got, want) {
		t.Errorf("figures %q, want %q", got, want)
	}
}

// What earlier runs used most comes first.
func TestNearChances(t *testing.T) {
	r := &nearRig{t: t, c: nearCore(t, []float64{0, 0, 0, 0.5, 0, 0, 0.9, 0})}
	r.want(r.step(new(stages.WarmSlots)), "copy 6 to 8", "copy 3 to 9", "copy 0 to 10")
}

// A copy that fails leaves its expert far and its slot free, for the next that is wanted.
func TestNearCopyFails(t *testing.T) {
	r := &nearRig{t: t, c: nearCore(t, nil)}
	r.step(new(stages.WarmSlots))
	r.want(r.copied(fmt.Errorf("the bus is broken")))
	r.copied(nil)
	r.copied(nil)
	r.want(r.step(used(3, 4)), "copy 3 to 8")
	r.want(r.copied(nil), "3 comes to 8")
}

// TestNearMovesAtOnce has many experts wanted at once: only so many slots change theirs.
func TestNearMovesAtOnce(t *testing.T) {
	const experts = 512
	c, err := expertio.New(expertio.Config{
		Layers: 1, Experts: experts, WaveSlots: 4, RingDepth: 1, Mapped: true, Near: experts / 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &nearRig{t: t, c: c}
	r.step(new(stages.WarmSlots))
	for len(r.reads) > 0 {
		r.copied(nil)
	}
	m := &stages.ExpertsUsed{Rows: 1}
	for e := experts / 2; e < experts; e++ {
		m.Uses = append(m.Uses, stages.KeyUse{Key: int32(e), Rows: 1})
	}
	first, then := r.step(m), r.step(m)
	if len(first) != 128 || len(then) != 0 {
		t.Errorf("%d experts leave after a step and %d after the next, want 128 and none",
			len(first), len(then))
	}
}

// TestNearProtocol has messages that cannot be: each is an error.
func TestNearProtocol(t *testing.T) {
	r := &nearRig{t: t, c: nearCore(t, nil)}
	r.step(new(stages.WarmSlots))
	var out stages.Outbox
	for name, m := range map[string]stages.Message{
		"an expert beyond":            used(8),
		"a negative expert":           used(-1),
		"a slot of the host":          &stages.SlotsVacated{Slots: []stages.SlotID{7}},
		"a slot beyond":               &stages.SlotsVacated{Slots: []stages.SlotID{11}},
		"a slot that nobody leaves":   &stages.SlotsVacated{Slots: []stages.SlotID{8}},
		"a copy of another time":      readEnded(8, 7, nil),
		"a copy to the host's memory": readEnded(3, 1, nil),
	} {
		if err := r.c.Step(m, &out); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}
