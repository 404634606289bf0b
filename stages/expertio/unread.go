package expertio

import "github.com/moeflux/moeflux-actor/stages"

// What this machine cannot read a host may have in memory, or read: all have the whole model. So a
// use whose read fails, or does not end, is lost only if no host can be asked.

// handOver gives a use of a load, which waits for a read, to the hosts, if one can be asked for it.
func (c *Core) handOver(l *load, use int, err error) bool {
	u := &l.uses[use]
	if !c.away.some || c.away.tableOf(l.step.ID) == nil || len(l.plan.Uses[use].Pairs) > c.cfg.AskPicks || c.nextHost(c.keyOf(l, use), u.failed) == here {
		return false
	}
	c.slots.forget(u.slot, l)
	u.slot, u.state, u.noRead = none, unread, true
	l.unread, l.readErr = l.unread+1, err
	return true
}

// askUnread asks hosts for what could not be read here, as they have credits. What no host can be
// asked for any more is lost.
func (c *Core) askUnread(out *stages.Outbox) {
	for _, l := range c.queue {
		if l.unread == 0 {
			continue
		}
		batch := asking{load: l, first: c.away.last, table: c.away.tableOf(l.step.ID)}
		for i := range l.uses {
			u := &l.uses[i]
			if u.state != unread || l.failed != nil {
				continue
			}
			switch h := c.nextHost(c.keyOf(l, i), u.failed); {
			case h == here:
				c.lose(l, i, l.readErr, out)
			case c.askOf(&batch, i, h):
				u.state = asked
				l.unread--
			}
		}
		c.sendAsks(&batch, out)
	}
}
