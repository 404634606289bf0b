package actors

import (
	"context"

	"github.com/moeflux/moeflux-actor/stages"
)

// ResizeSlots bounds the number of expert slots while the engine runs, and returns how many there
// are then: at least those of one wave, at most Info's, and no more than memory allows. The bound
// holds until the next call; slots of Info.Slots or more lift it. The engine never has more slots
// than that, but fewer while memory is short. Slots that are given up return their memory to the
// system as experts can be spared, which takes some layers' time; slots that come back are empty.
// Results stay the same. Mapped experts have no slots to give: their number stays.
//
// When ctx ends first the bound holds all the same.
func (e *Engine) ResizeSlots(ctx context.Context, slots int) (int, error) {
	a, err := e.rt.RequestTo(ctx, stages.ExpertIO, func(to stages.Caller) stages.Message { return &stages.ResizeSlots{Slots: slots, Caller: to} }, nil)
	if err != nil {
		return 0, err
	}
	return a.(*stages.SlotsResized).Slots, nil
}

// experts is what the shells need of the engine; see runtime.Experts.
type experts Engine

// Resized logs a new number of slots.
func (e *experts) Resized(slots int) {
	e.log.Info("expert slots", "slots", slots, "of", e.info.Slots, "bytes", int64(slots)*int64(e.info.SlotBytes))
}

// Free returns the memory of a slot to the system. If that fails the slot keeps its memory,
// which does no other harm.
func (e *experts) Free(id stages.SlotID) {
	if err := e.slots.discard(id); err != nil {
		e.log.Warn("the memory of an expert slot stays in use", "slot", id, "error", err)
	}
}

// Forgotten forgets the experts in the host's memory too.
func (e *experts) Forgotten() {
	if e.slots.staging != nil {
		e.slots.staging.tier.forgetAll()
	}
}
