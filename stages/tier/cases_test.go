package tier_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/invariants"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/tier"
)

// small is a core of one layer of 8 experts and as many slots.
func small(block, limit int) *tier.Core {
	return tier.New(tier.Config{Layers: 1, Experts: 8, Slots: 8, BlockRecords: block, Limit: limit})
}

func ask(slot stages.SlotID, expert int, guess bool) *tier.Ask {
	return &tier.Ask{Read: stages.Read{Slot: slot, Gen: 1, Expert: expert}, Rank: stages.RankOf(false, guess)}
}

// urgent is ask for an urgent step.
func urgent(slot stages.SlotID, expert int, guess bool) *tier.Ask {
	e := ask(slot, expert, guess)
	e.Rank = stages.RankOf(true, guess)
	return e
}

// told is what a core says to events, one word an effect.
func told(t *testing.T, c *tier.Core, events ...tier.Event) (words []string) {
	t.Helper()
	for _, in := range events {
		var out tier.Effects
		if err := c.Step(in, &out); err != nil {
			t.Fatalf("%T %+v: %v", in, in, err)
		}
		for _, f := range out.Fills {
			words = append(words, fmt.Sprintf("fill%d", f.Slot))
		}
		for _, h := range out.Hurries {
			words = append(words, fmt.Sprintf("hurry%d", h.Slot))
		}
		for _, u := range out.Uploads {
			words = append(words, fmt.Sprintf("upload%d", u.Slot))
		}
		for _, o := range out.Overdue {
			words = append(words, fmt.Sprintf("late%d", o.Slot))
		}
		for _, e := range out.Ended {
			words = append(words, fmt.Sprintf("end%d from %d", e.Slot, e.From))
		}
		if o := out.Memory; o.Kind != tier.NoOrder {
			words = append(words, fmt.Sprintf("%s block %d of %d", [...]string{tier.Pin: "pin", tier.Free: "free"}[o.Kind], o.Block, o.Records))
		}
	}
	return words
}

// bring has an expert read by slot 0, if it must be, and uploaded.
func bring(t *testing.T, c *tier.Core, expert int) (read bool) {
	t.Helper()
	words := told(t, c, ask(0, expert, false))
	if read = slices.Contains(words, "fill0"); read {
		told(t, c, &tier.Filled{})
	}
	told(t, c, &tier.Uploaded{})
	return read
}

// TestCases names what matters most, event by event.
func TestCases(t *testing.T) {
	filled := func(s stages.SlotID) tier.Event { return &tier.Filled{Slot: s} }
	failed := func(s stages.SlotID) tier.Event { return &tier.Filled{Slot: s, Err: errDisk} }
	done := func(s stages.SlotID) tier.Event { return &tier.Uploaded{Slot: s} }
	late := func(s stages.SlotID) tier.Event { return &tier.Overdue{Slot: s, Gen: 1, Err: errSlow} }
	hurry := func(s stages.SlotID) tier.Event { return &tier.Hurry{Slot: s, Gen: 1, Rank: stages.DemandRead} }
	for _, c := range []struct {
		name         string
		block, limit int
		events       []tier.Event
		want         string
	}{
		{"a read, and one of what is here", 2, 2, []tier.Event{ask(1, 5, false), filled(1), done(1), ask(2, 5, false), done(2)},
			"[fill1 upload1 end1 from 0 upload2 end2 from 1]"},
		{"a read follows another, in uploads and in failure", 2, 2, []tier.Event{ask(1, 5, false), ask(2, 5, false), filled(1), done(2), done(1), ask(3, 6, false), ask(4, 6, false), failed(3)},
			"[fill1 upload1 upload2 end2 from 2 end1 from 0 fill3 end3 from 0 end4 from 2]"},
		{"what failed is read again", 2, 2, []tier.Event{ask(1, 5, false), failed(1), ask(2, 5, false)}, "[fill1 end1 from 0 fill2]"},
		{"demand goes before guesses that wait", 1, 1, []tier.Event{ask(1, 1, false), ask(2, 2, true), ask(3, 3, true), ask(4, 4, false), filled(1), done(1), failed(4), failed(2)},
			"[fill1 upload1 fill4 end1 from 0 fill2 end4 from 0 fill3 end2 from 0]"},
		{"a guess that is hurried while it waits is demand", 1, 1, []tier.Event{ask(1, 1, false), ask(2, 2, true), ask(3, 3, true), hurry(3), failed(1)}, "[fill1 fill3 end1 from 0]"},
		{"who follows a guess hurries it, once", 1, 1, []tier.Event{ask(1, 1, true), ask(2, 1, true), hurry(2), ask(3, 1, false), hurry(1)}, "[fill1 hurry1]"},
		{"what is urgent goes before all that wait, demand first", 1, 1,
			[]tier.Event{ask(1, 1, false), ask(2, 2, false), ask(3, 3, true), urgent(4, 4, true), urgent(5, 5, false), failed(1), failed(5), failed(4), failed(2)},
			"[fill1 fill5 end1 from 0 fill4 end5 from 0 fill2 end4 from 0 fill3 end2 from 0]"},
		{"each who is more urgent hurries what it follows", 1, 1,
			[]tier.Event{ask(1, 1, true), ask(2, 1, false), urgent(3, 1, true), urgent(4, 1, false), ask(5, 1, false), urgent(6, 1, false)},
			"[fill1 hurry1 hurry1 hurry1]"},
		{"a read that waits follows another that waited for the same", 1, 1,
			[]tier.Event{ask(1, 1, false), ask(2, 2, false), ask(3, 3, false), ask(4, 2, false), failed(1), filled(2)},
			"[fill1 fill2 end1 from 0 upload2 upload4]"},
		{"who follows a late fill is late", 2, 2, []tier.Event{ask(1, 1, false), ask(2, 1, false), ask(3, 3, false), late(1)}, "[fill1 fill3 late1 late2]"},
		{"who waits for a record is late when all are held by late fills", 2, 2,
			[]tier.Event{ask(1, 1, false), ask(2, 2, false), ask(3, 3, false), late(1), late(2), filled(1), late(2)},
			"[fill1 fill2 late1 late2 late3 upload1 late2]"},
		{"a guess that waits for the disk gives no hope", 2, 2, []tier.Event{ask(1, 1, false), ask(2, 2, true), ask(3, 3, false), late(1)}, "[fill1 fill2 late1 late3]"},
		{"memory is pinned ahead, half a block early", 2, 5, []tier.Event{ask(1, 1, false), new(tier.Pinned), ask(2, 2, false), ask(3, 3, false), new(tier.Pinned)},
			"[fill1 pin block 1 of 2 fill2 fill3 pin block 2 of 1]"},
		{"a pin that fails is not tried again before another limit", 1, 3, []tier.Event{ask(1, 1, false), &tier.Pinned{Err: errPins}, ask(2, 2, false), &tier.Limit{Records: 2}},
			"[fill1 pin block 1 of 1 pin block 1 of 1]"},
		{"a limit that falls while a pin fails stays", 1, 3,
			[]tier.Event{ask(1, 1, false), new(tier.Pinned), ask(2, 2, false), &tier.Limit{Records: 1}, &tier.Pinned{Err: errPins}, filled(2), done(2), new(tier.Freed)},
			"[fill1 pin block 1 of 1 fill2 pin block 2 of 1 upload2 end2 from 0 free block 1 of 1]"},
		{"a block leaves when its uses end", 1, 2,
			[]tier.Event{ask(1, 1, false), new(tier.Pinned), ask(2, 2, false), &tier.Limit{}, filled(2), ask(3, 2, false), done(2), done(3), new(tier.Freed)},
			"[fill1 pin block 1 of 1 fill2 upload2 upload3 end2 from 0 end3 from 1 free block 1 of 1]"},
		{"no expert comes to a block that leaves", 1, 2, []tier.Event{ask(1, 1, false), new(tier.Pinned), ask(2, 2, false), &tier.Limit{}, failed(2), ask(3, 3, false), new(tier.Freed), failed(1)},
			"[fill1 pin block 1 of 1 fill2 end2 from 0 free block 1 of 1 fill3 end1 from 0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			core := small(c.block, c.limit)
			if got := fmt.Sprint(told(t, core, c.events...)); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			if err := core.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What was wanted longest ago makes room, and what is forgotten is read again.
func TestLeastRecentlyUsed(t *testing.T) {
	c := small(3, 3)
	for _, e := range []int{0, 1, 2, 0, 3} {
		bring(t, c, e)
	}
	var here []int
	for _, e := range []int{0, 2, 3} {
		if !bring(t, c, e) {
			here = append(here, e)
		}
	}
	if fmt.Sprint(here) != "[0 2 3]" || c.Hits() != 4 {
		t.Errorf("experts %v are here after %d hits, want 0, 2, 3 after 4", here, c.Hits())
	}
	told(t, c, ask(1, 2, false), new(tier.Forget))
	if bring(t, c, 2) || !bring(t, c, 0) {
		t.Error("all but what is in use should be forgotten")
	}
}

// An event that cannot be is an error, and changes nothing.
func TestProtocol(t *testing.T) {
	c := small(2, 8)
	told(t, c, ask(1, 1, false), new(tier.Pinned), ask(2, 2, false), &tier.Filled{Slot: 2}, ask(3, 1, false))
	var out tier.Effects
	for _, in := range []tier.Event{
		nil, ask(1, 3, false), ask(8, 1, false), ask(-1, 1, false), ask(4, 8, false), ask(4, -1, false), &tier.Ask{Read: stages.Read{Layer: 1}},
		&tier.Filled{Slot: 2}, &tier.Filled{Slot: 3}, &tier.Filled{Slot: 5}, &tier.Filled{Slot: 9}, &tier.Uploaded{Slot: 1}, &tier.Uploaded{Slot: 5}, &tier.Uploaded{Slot: -2},
		new(tier.Freed),
	} {
		if err := c.Step(in, &out); err == nil {
			t.Errorf("%T %+v is taken", in, in)
		}
		if err := c.Check(); err != nil || len(out.Fills)+len(out.Uploads)+len(out.Ended) > 0 {
			t.Errorf("%T %+v leaves %+v, %v", in, in, out, err)
		}
	}
	for _, in := range []tier.Event{&tier.Hurry{Slot: 9}, &tier.Hurry{Slot: 5}, &tier.Overdue{Slot: 9}, &tier.Overdue{Slot: 2, Gen: 1}, &tier.Overdue{Slot: 1}} {
		if err := c.Step(in, &out); err != nil || len(out.Hurries)+len(out.Overdue) > 0 {
			t.Errorf("%T %+v, of a read that has ended, gives %+v, %v", in, in, out, err)
		}
	}
	if err := small(2, 2).Step(new(tier.Pinned), &out); err == nil {
		t.Error("memory that nobody asked for is taken")
	}
	if err := c.AtRest(); err == nil {
		t.Error("a core with reads under way is at rest")
	}
}

// TestNoAllocations reads through a tier that is too small, with followers and reads that wait: in
// the steady state nothing is allocated.
func TestNoAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector and the checks allocate")
	}
	c := small(2, 2)
	var out tier.Effects
	step := func(in tier.Event) {
		out.Reset()
		if err := c.Step(in, &out); err != nil {
			t.Fatal(err)
		}
	}
	expert := 0
	ask := func(slot stages.SlotID, expert int, guess bool) {
		step(&tier.Ask{Read: stages.Read{Slot: slot, Expert: expert}, Rank: stages.RankOf(false, guess)})
	}
	got := testing.AllocsPerRun(200, func() {
		a, b, d := expert, (expert+1)%8, (expert+2)%8
		expert = d
		ask(0, a, true)
		here := len(out.Uploads) > 0 // from the round before
		ask(1, b, false)
		ask(2, d, true)
		ask(3, b, false)
		step(&tier.Hurry{Slot: 0})
		if !here {
			step(&tier.Filled{Slot: 0})
		}
		step(&tier.Uploaded{Slot: 0})
		step(&tier.Filled{Slot: 1})
		step(&tier.Uploaded{Slot: 3})
		step(&tier.Uploaded{Slot: 1})
		step(&tier.Filled{Slot: 2})
		step(&tier.Uploaded{Slot: 2})
	})
	if got != 0 {
		t.Errorf("%v allocations a round, want none", got)
	}
	if err := c.AtRest(); err != nil {
		t.Error(err)
	}
}
