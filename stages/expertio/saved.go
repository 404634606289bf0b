package expertio

import "math"

// A step that decodes has a row or a few, which are anywhere sooner than an expert is read. Rows of
// a prompt are many, and a slow network carries them for longer than the disk takes for the expert.
// So a use of a prompt goes away only where that is quicker by what was measured: the rate of the
// network to its host, by the rows, against the disk's time for a record. And the uses of a layer
// that would go away together must save more than the delay of the network, for which they all
// wait. What hosts and this machine take to compute is left out: it is the same work.
//
// As long as nothing is known of the disk, a prompt reads some uses here, so that it is.

// saved returns by how much sooner a host has carried a use of a load than this machine has read
// its expert, in nanoseconds, but for the delay of the network.
func (c *Core) saved(l *load, use, h int) float64 {
	read, row := c.pace.readNS(), c.away.hosts[h].row
	if l.step.Batch.Urgent || read == 0 || row == 0 {
		return math.Inf(1)
	}
	return read - float64(len(l.plan.Uses[use].Pairs))*row
}

// worthAsking reports whether the uses of a load that go away save more than the longest delay of
// their hosts.
func (c *Core) worthAsking(b *asking) bool {
	l, saved, delay := b.load, 0.0, 0.0
	if l.step.Batch.Urgent {
		return true
	}
	for i := range l.uses {
		u := &l.uses[i]
		if !u.open() {
			continue
		}
		if h := c.whoComputes(b, c.keyOf(l, i), u.failed); h != here {
			if s := c.saved(l, i, h); s > 0 {
				saved, delay = saved+s, max(delay, c.away.hosts[h].delay)
			}
		}
	}
	return saved > delay
}

// tries returns how many uses of a load are read here to know how fast the disk is.
func (c *Core) tries(l *load) int {
	if l.step.Batch.Urgent {
		return 0
	}
	return fewReads - int(c.pace.done) - c.pace.reads
}
