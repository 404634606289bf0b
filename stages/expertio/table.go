package expertio

import (
	"cmp"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/expertio/placement"
)

// Which host owns which expert is a table of an epoch (package placement). It changes when a host
// comes or goes, and when another one would be clearly better for what is used now. A step goes by
// the table that was there when it began. When no step goes by an older one any more, hosts are
// told what is theirs, which they then read ahead; asks of earlier epochs they refuse.

const (
	// firstLook and nextLook are after how many steps the uses are looked at for a better table:
	// first, and at most.
	firstLook, nextLook = 64, 4096
	// betterBy is the share of its cost that a new table must save, since its owners have to read.
	betterBy = 0.15
	// costWeight is the weight of an answer in what is known of a host's speed.
	costWeight = 0.05
	// mostCost is how many times what is known an answer counts at most: a host that was held up
	// once is not slow. A first answer counts at most so many times what is known of another host.
	mostCost = 2
	// pull is how much each answer moves what is known of the other hosts towards its own host. So
	// one that seemed slow, and is asked no more for that, is tried again.
	pull = 0.001
	// mostPins bounds the steps that are remembered. A step whose last layer never comes is
	// forgotten after so many others.
	mostPins = 64
)

// placed is the tables in use.
type placed struct {
	table *placement.Table // for steps that begin now; nil before the first host
	pins  []pin            // of the steps under way, in the order of their beginning
	told  uint32           // the epoch that hosts know of
	steps int              // since the uses were looked at
	look  int              // after how many they are
}

// pin is the table by which a step goes.
type pin struct {
	step  stages.StepID
	table *placement.Table // nil: there was no host, and none is asked
}

// place has a step go by the present table from its first layer on.
func (c *Core) place(s *stages.Step) {
	a := &c.away
	if len(a.hosts) == 0 || slices.ContainsFunc(a.pins, func(p pin) bool { return p.step == s.ID }) {
		return
	}
	if a.steps++; a.some && a.steps >= a.look {
		a.steps, a.look = 0, min(2*a.look, nextLook)
		c.reconsider()
	}
	if len(a.pins) >= mostPins {
		a.pins = slices.Delete(a.pins, 0, 1)
	}
	a.pins = append(a.pins, pin{s.ID, a.table})
}

// leave forgets by which table a step goes.
func (p *placed) leave(id stages.StepID) {
	p.pins = slices.DeleteFunc(p.pins, func(x pin) bool { return x.step == id })
}

// tableOf returns the table by which a step goes.
func (p *placed) tableOf(id stages.StepID) *placement.Table {
	for i := range p.pins {
		if p.pins[i].step == id {
			return p.pins[i].table
		}
	}
	return p.table
}

// owners returns this machine and the hosts as a placement sees them.
func (c *Core) owners() []placement.Owner {
	all := []placement.Owner{{Room: c.slots.live()}}
	for i := range c.away.hosts {
		all = append(all, placement.Owner{Room: c.away.hosts[i].experts, Cost: c.away.hosts[i].cost})
	}
	return all
}

// model returns what is known of the uses of experts.
func (c *Core) model() placement.Model {
	m := placement.Model{Layers: c.cfg.Layers, First: c.cfg.First, Experts: c.cfg.Experts}
	if !c.cfg.Mapped {
		m.Chance = c.slots.chance
	}
	return m
}

func (c *Core) makeTable() *placement.Table {
	return placement.Make(c.model(), c.owners(), c.away.table)
}

// replace has steps that begin from now on go by another table.
func (c *Core) replace(t *placement.Table) {
	c.away.table, c.away.steps, c.away.look = t, 0, firstLook
}

// reconsider changes the table if another one is clearly better for what is used now.
func (c *Core) reconsider() {
	t := c.makeTable()
	m, owners := c.model(), c.owners()
	if placement.Cost(m, owners, t) < (1-betterBy)*placement.Cost(m, owners, c.away.table) {
		c.away.table = t
	}
}

// costOf takes note of how long a host computes an expert for a row. Rows of prompts share experts,
// so they say little of that.
func (c *Core) costOf(a *ask, m *stages.ExpertsAnswered) {
	if a.load == nil || m.Err != nil || len(m.Uses) == 0 || m.ComputedNS <= 0 || len(a.load.step.Batch.Rows) != 1 {
		return
	}
	h, cost := &c.away.hosts[a.host], float64(m.ComputedNS)/float64(len(m.Uses))
	if h.cost == 0 {
		h.cost = cost
		c.evenCosts()
		return
	}
	// Nothing makes a host quicker than it is, while much may hold it up.
	h.cost = min(h.cost+costWeight*(min(cost, mostCost*h.cost)-h.cost), mostCost*cost)
	for i := range c.away.hosts {
		if other := &c.away.hosts[i]; other.cost > 0 {
			other.cost += pull * (h.cost - other.cost)
		}
	}
}

// evenCosts takes no host to be more than mostCost times as slow as another. So it is whenever one
// has answered for the first time: that may have been slow, as nothing was in its caches yet, and
// who seems far slower than others is asked too little to show that it is not. One that is slow
// shows that soon.
func (c *Core) evenCosts() {
	least := math.Inf(1)
	for i := range c.away.hosts {
		if cost := c.away.hosts[i].cost; cost > 0 {
			least = min(least, cost)
		}
	}
	for i := range c.away.hosts {
		h := &c.away.hosts[i]
		h.cost = min(h.cost, mostCost*least)
	}
}

// can reports whether a host can be asked, and is not among those that a set of bits excludes.
func (a *away) can(h int, but uint32) bool {
	return h >= 0 && a.hosts[h].experts > 0 && but&(1<<h) == 0
}

// busy is how long a host computes what a layer asks it for if it gets one expert more, in
// nanoseconds; by the number of experts if the speed of a host is not known.
func (c *Core) busy(b *asking, h, beside int) float64 {
	cost := c.away.hosts[h].cost
	if cost == 0 || c.away.hosts[beside].cost == 0 {
		cost = 1
	}
	return float64(b.uses[h]+1) * cost
}

// whoComputes returns whom to ask for an expert: of its owner and the host with a copy the one that
// has done first, if both can be asked.
func (c *Core) whoComputes(b *asking, key int, but uint32) int {
	own, second := int(b.table.Owners[key]), int(b.table.Copies[key])
	if own == here {
		return here
	}
	switch can, too := c.away.can(own, but), c.away.can(second, but); {
	case can && too && c.busy(b, second, own) < c.busy(b, own, second):
		return second
	case can:
		return own
	case too:
		return second
	}
	return c.next(key, but)
}

// tellShares tells hosts what is theirs once no step goes by an older table.
func (c *Core) tellShares(out *stages.Outbox) {
	a := &c.away
	if a.table == nil || a.told == a.table.Epoch || slices.ContainsFunc(a.pins, func(p pin) bool { return p.table != a.table }) {
		return
	}
	a.told = a.table.Epoch
	for h := range a.hosts {
		if a.hosts[h].experts > 0 {
			out.Shares = append(out.Shares, stages.HostShare{Host: h, Epoch: a.told, Keys: c.shareOf(h)})
		}
	}
}

// shareOf returns what a host owns or has copies of, the most used first.
func (c *Core) shareOf(h int) []int32 {
	t, keys := c.away.table, []int32{}
	for key := c.cfg.First * c.cfg.Experts; key < c.cfg.Layers*c.cfg.Experts; key++ {
		if int(t.Owners[key]) == h || int(t.Copies[key]) == h {
			keys = append(keys, int32(key))
		}
	}
	if !c.cfg.Mapped {
		slices.SortStableFunc(keys, func(a, b int32) int { return cmp.Compare(c.slots.chance(int(b)), c.slots.chance(int(a))) })
	}
	return keys
}
