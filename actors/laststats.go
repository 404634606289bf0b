package actors

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// keepStats collects the last figures. The actors have stopped, and so have reads and device, so
// the cores belong to the caller. A core that has failed may be in any state; if it panics again
// there are no figures.
func (e *Engine) keepStats() {
	defer func() {
		if r := recover(); r != nil {
			e.log.Debug("there are no last figures", "reason", fmt.Sprint(r))
		}
	}()
	m := &stages.CollectStats{Stats: new(Stats)}
	for _, c := range e.parent.children {
		s, ok := c.actor.(*shell)
		if !ok {
			continue
		}
		s.out.Reset()
		if err := s.core.Step(m, &s.out); err != nil {
			panic(err)
		}
		s.e.meter.After(s.id, m, &s.out)
	}
	e.addReads(m.Stats)
	e.last.Store(m.Stats)
}
