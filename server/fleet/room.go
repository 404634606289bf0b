package fleet

import (
	"cmp"
	"slices"
	"time"
)

// turnShare says how long a turn is: this many times what it costs to load the model that has it
// and the one that waits. Two models that are both wanted all the time, and do not fit together,
// then spend less than a fifth of the time on loading.
const turnShare = 4

// idleFloor is the least time of not being used that counts. Two models that were both used a
// moment ago differ in what they cost, and not in milliseconds.
const idleFloor = 10 * time.Second

// diskRate is what is assumed of a disk, in bytes a second, where nothing was measured: for the
// first loading, and for the experts that fill slots after each.
const diskRate = 1 << 30

func readTime(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / diskRate * float64(time.Second))
}

// cost is how long it takes to have a model back as it is now: to load it, and to fill its slots.
func (m *held) cost() time.Duration { return m.took + readTime(m.share) }

// worth is what a byte of an unused model is worth: how long it takes to bring back, by how soon
// that is likely to be. The longer nobody has come, the longer it takes until somebody does: with
// gaps of all lengths the chance of a request in the next moment falls as one by the time since the
// last.
func (m *held) worth(now time.Duration) float64 {
	return float64(m.cost()) / float64(max(now-m.used, idleFloor)) / float64(max(m.Need.least(), 1))
}

// makeRoom loads the model that has been waited for longest, or unloads others for it. Nobody
// overtakes: a smaller one behind it waits as well. One model is loaded at a time.
func (c *Core) makeRoom(now time.Duration) {
	c.turn = 0
	c.queue = slices.DeleteFunc(c.queue, func(i int) bool { return c.models[i].waiting == 0 && !c.models[i].Pinned })
	for len(c.queue) > 0 && c.models[c.queue[0]].phase == here {
		c.admit(now, c.queue[0]) // it was to leave for one that nobody waits for any more
	}
	var leave []int
	if len(c.queue) > 0 {
		leave = c.roomFor(now, c.queue[0])
	}
	for i := range c.models {
		if m := &c.models[i]; m.phase == here && m.closing && !slices.Contains(leave, i) {
			c.admit(now, i)
		}
	}
	for _, i := range leave {
		if m := &c.models[i]; m.users == 0 {
			c.unload(i)
		} else {
			m.closing = true
		}
	}
}

// roomFor begins to load a model if there is room, or returns the models that must leave for it.
func (c *Core) roomFor(now time.Duration, model int) (leave []int) {
	m := &c.models[model]
	free := c.budget
	var soon int64 // what those that are leaving will give back
	for i := range c.models {
		switch o := &c.models[i]; o.phase {
		case loading:
			return nil
		case leaving:
			soon += o.Need.Fixed + o.share
			free -= o.Need.Fixed + o.share
		case here:
			free -= o.Need.least()
		}
	}
	if m.phase != away {
		return nil // it must be gone before it can come back
	}
	missing := m.Need.least() - free
	if missing <= 0 {
		m.phase = loading
		m.busy = busyness{level: 1, on: true, at: now} // who waits for it will use it
		c.levelled = 0
		c.level(now)
		c.say(Command{Kind: Load, Model: model, Bytes: m.share})
		return nil
	}
	return c.leaving(now, m, missing-soon)
}

// leaving chooses the models that give so many bytes to another: of those nobody uses the ones
// worth least, then those whose turns end first. None leaves before the turns of all are over.
func (c *Core) leaving(now time.Duration, m *held, missing int64) (leave []int) {
	for i := range c.models {
		if o := &c.models[i]; o.phase == here && !o.Pinned {
			leave = append(leave, i)
		}
	}
	turnOf := func(o *held) time.Duration {
		if o.users == 0 {
			return now
		}
		return o.since + turnShare*(o.cost()+m.cost())
	}
	slices.SortFunc(leave, func(a, b int) int {
		x, y := &c.models[a], &c.models[b]
		if x.users == 0 && y.users == 0 {
			return cmp.Or(cmp.Compare(x.worth(now), y.worth(now)), cmp.Compare(a, b))
		}
		if x.users == 0 || y.users == 0 {
			return cmp.Compare(min(x.users, 1), min(y.users, 1))
		}
		return cmp.Or(cmp.Compare(turnOf(x), turnOf(y)), cmp.Compare(a, b))
	})
	n := 0
	for ; n < len(leave) && missing > 0; n++ {
		missing -= c.models[leave[n]].Need.least()
	}
	leave = leave[:n]
	for i := n - 1; i >= 0; i-- { // who is not needed stays, those worth most first
		if bytes := c.models[leave[i]].Need.least(); missing+bytes <= 0 {
			missing += bytes
			leave = slices.Delete(leave, i, i+1)
		}
	}
	for _, i := range leave {
		if end := turnOf(&c.models[i]); end > now {
			c.turn = max(c.turn, end)
		}
	}
	if c.turn > 0 {
		return nil
	}
	return leave
}
