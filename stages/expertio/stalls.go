package expertio

import (
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// stall is a time in which a load, or a wave of it, stands still for a reason that lies inside the
// engine. It becomes a record.Wait when it ends.
type stall struct {
	on      bool
	reason  record.Reason
	by      stages.StepID // that is in the way; 0: none, or several
	sinceNS int64
}

// stopped notes that a load stands still, for a reason and because of a step.
func (c *Core) stopped(l *load, s *stall, reason record.Reason, by stages.StepID) {
	if s.on && s.reason == reason {
		if s.by != by {
			s.by = 0
		}
		return
	}
	c.goesOn(l, s)
	*s = stall{on: true, reason: reason, by: by, sinceNS: c.notes.now}
}

// goesOn notes that a load does not stand still any more, if it did.
func (c *Core) goesOn(l *load, s *stall) {
	if !s.on {
		return
	}
	s.on = false
	w := record.Wait{
		Step: uint64(l.step.ID), For: uint64(s.by), BeganNS: s.sinceNS, EndedNS: c.notes.now, Layer: int32(l.step.Layer), Wave: -1, Reason: s.reason,
	}
	if s.reason == record.WaveCredit {
		w.Wave = int32(l.waves)
	}
	c.notes.log.Waits.Add(w)
}

// gaveUp ends the stalls of a load that is over.
func (c *Core) gaveUp(l *load) {
	c.goesOn(l, &l.short)
	c.goesOn(l, &l.credit)
}

// stopAll notes that the first of some loads lacks slots or may not read, and that those after it
// wait for it.
func (c *Core) stopAll(loads []*load, reason record.Reason) {
	first := loads[0]
	c.stopped(first, &first.short, reason, c.inTheWay(reason))
	for _, l := range loads[1:] {
		if l.failed == nil && l.left > 0 {
			c.stopped(l, &l.short, reason, first.step.ID)
		}
	}
}

// inTheWay returns the only step that keeps others from slots, or from reading; 0 if there are
// several, or none.
func (c *Core) inTheWay(reason record.Reason) stages.StepID {
	if reason == record.ReadCredit {
		return only(c.urgent.steps)
	}
	var by one
	for i := range c.rings {
		for _, ids := range c.rings[i] {
			for _, id := range ids {
				by.add(id)
			}
		}
	}
	for _, l := range c.queue {
		if l.unsent > l.left { // some of its uses have slots
			by.add(l.step.ID)
		}
	}
	return by.step
}

// one is the only step of several additions; 0 if there were others.
type one struct {
	step stages.StepID
	many bool
}

func (o *one) add(id stages.StepID) {
	switch {
	case o.many || o.step == id:
	case o.step == 0:
		o.step = id
	default:
		*o = one{many: true}
	}
}

func only(steps []stages.StepID) stages.StepID {
	var by one
	for _, id := range steps {
		by.add(id)
	}
	return by.step
}
