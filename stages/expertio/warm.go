package expertio

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// warmAtOnce is how many experts a warm start reads at once: enough to keep a disk busy, and few
// enough that a demand read, which goes before all reads that have not begun, hardly waits.
const warmAtOnce = 4

// warm is the experts that are read before they are needed: those that earlier runs used most and,
// if there is a slot for every expert, all others too.
type warm struct {
	keys    []int32 // not read yet, most used first, then in the order of the files
	on      bool
	reading int
}

// seed uses what is known from earlier runs and lists the experts for a warm start.
func (c *Core) seed() {
	for k, p := range c.cfg.Chances {
		c.slots.order(k).Seed(k, p)
		if p > 0 {
			c.warm.keys = append(c.warm.keys, int32(k))
		}
	}
	slices.SortStableFunc(c.warm.keys, func(a, b int32) int { return cmp.Compare(c.cfg.Chances[b], c.cfg.Chances[a]) })
	if c.cfg.Slots < c.everything() {
		c.warm.keys = c.warm.keys[:min(len(c.warm.keys), c.cfg.Slots)]
		return
	}
	for k := c.cfg.First * c.cfg.Experts; k < c.cfg.Layers*c.cfg.Experts; k++ {
		if c.cfg.Chances == nil || c.cfg.Chances[k] <= 0 {
			c.warm.keys = append(c.warm.keys, int32(k))
		}
	}
}

// warmUp reads experts into empty slots while nothing else is being read. It leaves the slots of
// one wave to demand reads.
func (c *Core) warmUp(out *stages.Outbox) {
	if !c.warm.on {
		return
	}
	for len(c.warm.keys) > 0 && c.reading.all() == c.warm.reading && c.warm.reading < warmAtOnce {
		key := int(c.warm.keys[0])
		pool := c.slots.of(key / c.cfg.Experts)
		if pool.spare() <= c.cfg.WaveSlots {
			return
		}
		c.warm.keys = c.warm.keys[1:]
		if _, ok := c.slots.find(key); ok || len(pool.empty) == 0 || c.elsewhere(key) {
			continue
		}
		id, _, ok := c.slots.take(key)
		if !ok {
			break
		}
		s := c.slots.at(id)
		s.speculative, s.warm = true, true
		c.warm.reading++
		first := len(c.reads)
		c.reads = append(c.reads, c.readInto(id, stages.GuessRead, c.notes.warm()))
		c.group(out, stages.Step{Layer: key / c.cfg.Experts}, first, stages.GuessRead)
	}
	if len(c.warm.keys) == 0 {
		c.warm.on, c.warm.keys = false, nil
	}
}
