package tier_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/tier"
)

var (
	errDisk = errors.New("the disk is round")
	errPins = errors.New("no pages to pin")
	errSlow = errors.New("the disk sleeps")
)

// run is a core beside the naive model, and what the world owes to them.
type run struct {
	*rand.Rand
	core  *tier.Core
	model *naive
	out   tier.Effects

	slots   int
	busy    map[stages.SlotID]bool // asked for and not ended
	gen     []uint32               // [slots]
	filling []stages.SlotID
	copying []stages.SlotID
	order   tier.Order
	counts  map[string]int
}

// step gives an event to both, and takes what follows.
func (r *run) step(in tier.Event) error {
	r.out.Reset()
	if err := r.core.Step(in, &r.out); err != nil {
		return err
	}
	if err := errors.Join(r.model.step(in, &r.out), r.core.Check()); err != nil {
		return err
	}
	for _, f := range r.out.Fills {
		r.filling = append(r.filling, f.Slot)
	}
	for _, u := range r.out.Uploads {
		r.copying = append(r.copying, u.Slot)
	}
	for _, e := range r.out.Ended {
		if !r.busy[e.Slot] {
			return fmt.Errorf("the read into slot %d ends twice", e.Slot)
		}
		delete(r.busy, e.Slot)
		r.counts[fmt.Sprint("from ", e.From)]++
	}
	r.counts["hurries"] += len(r.out.Hurries)
	r.counts["late"] += len(r.out.Overdue)
	if r.out.Memory.Kind != tier.NoOrder {
		r.order = r.out.Memory
		r.counts[fmt.Sprint("order ", r.order.Kind)]++
	}
	r.counts["waiting"] = max(r.counts["waiting"], len(r.model.waiting))
	return nil
}

func (r *run) take(from *[]stages.SlotID) stages.SlotID {
	i := r.IntN(len(*from))
	slot := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return slot
}

// failing returns err in one of n cases.
func (r *run) failing(n int, err error) error {
	if r.IntN(n) == 0 {
		return err
	}
	return nil
}

// next makes an event, or nil if what was drawn cannot be.
func (r *run) next(experts, most int) tier.Event {
	slot := stages.SlotID(r.IntN(r.slots))
	switch k := r.IntN(40); {
	case k < 14 && !r.busy[slot]:
		r.gen[slot]++
		r.busy[slot] = true
		return &tier.Ask{Read: stages.Read{Slot: slot, Gen: r.gen[slot], Layer: r.IntN(2), Expert: r.IntN(experts)}, Rank: stages.RankOf(r.IntN(3) == 0, r.IntN(2) == 0)}
	case k < 16:
		return &tier.Hurry{Slot: slot, Gen: r.gen[slot] - uint32(r.IntN(2)), Rank: stages.RankOf(r.IntN(2) == 0, r.IntN(8) == 0)}
	case k < 23 && len(r.filling) > 0:
		return &tier.Filled{Slot: r.take(&r.filling), Err: r.failing(6, errDisk)}
	case k < 33 && len(r.copying) > 0:
		return &tier.Uploaded{Slot: r.take(&r.copying), Err: r.failing(20, errDisk)}
	case k == 33:
		return &tier.Overdue{Slot: slot, Gen: r.gen[slot] - uint32(r.IntN(4)/3), Err: errSlow}
	case k == 34 && r.IntN(3) == 0:
		return &tier.Limit{Records: r.IntN(most)}
	case k == 35 && r.IntN(3) == 0:
		return new(tier.Forget)
	case k > 35:
		return r.obey(5)
	}
	return nil
}

// obey does what was ordered, or fails to in one of n cases.
func (r *run) obey(n int) tier.Event {
	o := r.order
	r.order = tier.Order{}
	switch o.Kind {
	case tier.Pin:
		return &tier.Pinned{Err: r.failing(n, errPins)}
	case tier.Free:
		return new(tier.Freed)
	}
	return nil
}

// finish lets everything end.
func (r *run) finish() error {
	for {
		var in tier.Event
		switch {
		case len(r.copying) > 0:
			in = &tier.Uploaded{Slot: r.take(&r.copying)}
		case len(r.filling) > 0:
			in = &tier.Filled{Slot: r.take(&r.filling)}
		case r.order.Kind != tier.NoOrder:
			in = r.obey(1 << 30)
		default:
			if len(r.busy) > 0 {
				return fmt.Errorf("reads into slots %v never ended", slices.Sorted(maps.Keys(r.busy)))
			}
			return r.core.AtRest()
		}
		if err := r.step(in); err != nil {
			return err
		}
	}
}

// TestAgainstModel sends random events through cores of all sizes and wants the effects of the
// naive model, event by event; and in the end that every read has ended and the memory keeps to the
// limit.
func TestAgainstModel(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(testenv.Rounds(100, 300, 6000)) {
		rng := rand.New(rand.NewPCG(seed, 11))
		experts, per, slots := 1+rng.IntN(12), 1+rng.IntN(5), 1+rng.IntN(14)
		most := 1 + rng.IntN(2*experts+per)
		limit := per + rng.IntN(most)
		r := &run{
			Rand: rng, slots: slots, busy: map[stages.SlotID]bool{}, gen: make([]uint32, slots), counts: counts, model: newNaive(per, limit),
			core: tier.New(tier.Config{Layers: 2, Experts: experts, Slots: slots, BlockRecords: per, Limit: limit}),
		}
		var err error
		for i := 0; i < 400 && err == nil; i++ {
			if in := r.next(experts, most+per); in != nil {
				err = r.step(in)
			}
		}
		if err == nil {
			err = r.finish()
		}
		if err != nil {
			t.Fatalf("seed %d, %d experts, blocks of %d, limit %d, %d slots: %v", seed, 2*experts, per, limit, slots, err)
		}
	}
	for _, what := range []string{"from 0", "from 1", "from 2", "order 1", "order 2", "hurries", "late", "waiting"} {
		if counts[what] == 0 {
			t.Errorf("%s: none, the test shows nothing of them", what)
		}
	}
	t.Log(counts)
}
