package expertio

import "github.com/moeflux/moeflux-actor/stages"

// forgetExperts empties the slots that no load has pinned. A slot that is being read is emptied
// when the read ends, unless a load has come to wait for it by then.
func (c *Core) forgetExperts(m *stages.ForgetExperts, out *stages.Outbox) {
	if c.cfg.Mapped {
		out.Answer(m.Caller, &stages.ExpertsForgotten{Err: stages.ErrExpertsMapped})
		return
	}
	c.warm.on, c.warm.keys = false, nil
	for i := range c.slots.all {
		s := &c.slots.all[i]
		switch {
		case s.pins > 0:
		case s.state == resident:
			c.empty(stages.SlotID(i))
		case s.state == filling:
			s.doomed = true
		}
	}
	c.forgets = append(c.forgets, m.Caller)
}

// empty frees a slot whose expert is not in use. A speculative read that was never used counts as
// wasted, but speculation is not judged by it.
func (c *Core) empty(id stages.SlotID) {
	if s := c.slots.at(id); s.predicted {
		c.layers[s.key/c.cfg.Experts].PrefetchWasted++
	}
	c.slots.clear(id)
}

// answerForgotten answers when no doomed slot is being read any more.
func (c *Core) answerForgotten(out *stages.Outbox) {
	if len(c.forgets) == 0 {
		return
	}
	for i := range c.slots.all {
		if c.slots.all[i].doomed {
			return
		}
	}
	for _, to := range c.forgets {
		out.Answer(to, new(stages.ExpertsForgotten))
	}
	clear(c.forgets)
	c.forgets = c.forgets[:0]
}
