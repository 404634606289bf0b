package actors

import (
	"context"

	"github.com/moeflux/moeflux-actor/actors/expertmem"
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
	a, err := e.rt.RequestTo(ctx, stages.ExpertIO, func(to stages.Caller) stages.Message { return expertmem.CallersBound(slots, to) }, nil)
	if err != nil {
		return 0, err
	}
	return a.(*stages.SlotsResized).Slots, nil
}
