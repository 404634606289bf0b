package expertio

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// prefetch starts speculative reads for experts that have no slot. It leaves a wave's worth of slots to demand.
func (c *Core) prefetch(m *stages.PrefetchExperts, out *stages.Outbox) error {
	if m.Layer < 0 || m.Layer >= c.cfg.Layers {
		return fmt.Errorf("expertio: experts are foretold for %v of a model with %d layers", &m.Step, c.cfg.Layers)
	}
	st := &c.layers[m.Layer]
	var reads []stages.Read
	for _, e := range m.Experts {
		if e < 0 || int(e) >= c.cfg.Experts {
			return fmt.Errorf("expertio: expert %d of %d is foretold for %v", e, c.cfg.Experts, &m.Step)
		}
		key := m.Layer*c.cfg.Experts + int(e)
		c.slots.foretell(key)
		if _, ok := c.slots.find(key); ok {
			continue
		}
		if c.slots.spare() <= c.cfg.WaveSlots {
			st.PrefetchDropped++
			continue
		}
		id, evicted, ok := c.slots.take(key)
		if !ok {
			st.PrefetchDropped++
			continue
		}
		c.countEvicted(evicted)
		s := c.slots.at(id)
		s.foretold, s.speculative = true, true
		reads = append(reads, c.readInto(id))
	}
	if len(reads) > 0 {
		out.Reads = append(out.Reads, stages.ReadGroup{Step: m.Step, Reads: reads, Speculative: true})
	}
	return nil
}
