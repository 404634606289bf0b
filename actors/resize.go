package actors

import (
	"context"
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// ResizeSlots changes the number of expert slots while the engine runs, and returns how many there
// are then: at least those of one wave, at most Info's. Fewer give their memory back to the system
// as experts can be spared, which takes some layers' time; more come back empty. Results stay the
// same. Mapped experts have no slots to give: their number stays.
func (e *Engine) ResizeSlots(ctx context.Context, slots int) (int, error) {
	if e.closed.Load() {
		return 0, stages.ErrClosed
	}
	reply := make(chan stages.Message, 1)
	e.sendTo(stages.ExpertIO, &stages.ResizeSlots{Slots: slots, Caller: reply})
	select {
	case a := <-reply:
		return a.(*stages.SlotsResized).Slots, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("moeflux: waiting for %d expert slots: %w", slots, context.Cause(ctx))
	case <-e.broken:
		return 0, e.reason
	case <-e.gone:
		return 0, stages.ErrClosed
	}
}

// resized tells the operator of another number of slots.
func (e *Engine) resized(m *stages.SlotsResized) {
	e.log.Info("expert slots", "slots", m.Slots, "of", e.info.Slots, "bytes", int64(m.Slots)*int64(e.info.SlotBytes))
}

// freeSlot gives the memory of a slot back to the system. Where that cannot be the slot keeps it,
// and nothing else is wrong.
func (e *Engine) freeSlot(id stages.SlotID) {
	if err := e.slots.discard(id); err != nil {
		e.log.Warn("the memory of an expert slot stays in use", "slot", id, "error", err)
	}
}
