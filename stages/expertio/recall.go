package expertio

import "github.com/moeflux/moeflux-actor/stages"

// recall takes back guesses of which a layer's plan shows that they were wrong: those for the step,
// or made by an earlier step for the next one of its sequences. What the disk has begun goes on.
//
// Others would be read when the disk comes to them, and until then they keep their slots. Beside
// urgent steps that follow each other closely it never does: what a prompt has guessed would keep
// the slots from the texts that decode for as long as these go on, and what they miss for want of
// slots keeps the disk busy.
func (c *Core) recall(m *stages.LayerRouted, out *stages.Outbox) {
	if c.cfg.Mapped || c.reading.of(stages.GuessRead)+c.reading.of(stages.UrgentGuess) == 0 {
		return
	}
	uses := m.Plan.Uses
	for e := range c.cfg.Experts {
		if len(uses) > 0 && int(uses[0].Expert) == e {
			uses = uses[1:]
			continue
		}
		id, ok := c.slots.find(m.Layer*c.cfg.Experts + e)
		if !ok || !c.slots.at(id).wrong(m.ID) {
			continue
		}
		s := c.slots.at(id)
		s.recalled = true
		out.Recalls = append(out.Recalls, stages.Recall{Slot: id, Gen: s.gen})
	}
}

// wrong reports whether the slot is being read into for a guess that a step has shown to be wrong,
// whose plan for the layer does not have the expert.
func (s *slot) wrong(step stages.StepID) bool {
	of := s.request.step
	return s.state == filling && s.speculative && !s.warm && !s.recalled && s.rank.Speculative() && len(s.waiting) == 0 &&
		(step == of && !s.request.next || step > of && s.request.next)
}
