package expertio

import (
	"fmt"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/expertio/placement"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Expert hosts are other processes that compute experts. Every expert has one owner, a host that
// can be asked or this machine, and may have a copy on a second host (table.go). A use whose expert
// is not in memory here goes away if its owner is a host; what this machine owns is read into slots
// as ever, and nothing else is read ahead.
//
// An ask that fails goes to the other host that has the expert, then to any host, and in the end to
// the disk, at any moment, and what the disk fails to read goes to hosts (unread.go): bits do not
// depend on who owns what. Which of all hosts is next follows
// from a score for the expert, drawn from both their names and weighted by memory (rendezvous
// hashing), so that what one leaves behind is spread over all others.

// MaxHosts is the most expert hosts of an engine.
const MaxHosts = 32

// here is this machine, among owners.
const here = placement.Here

// away is what is known of expert hosts and asked of them.
type away struct {
	hosts []host
	some  bool // some host can be asked
	asks  map[uint64]*ask
	last  uint64 // the last ask's number
	placed
}

// host is one expert host.
type host struct {
	experts int // that it has memory for; 0: it cannot be asked
	credits int // asks that it takes at once
	asks    int // under way
	// cost is what it computes an expert for a row in, in nanoseconds, as it says; 0 is not known.
	cost float64
	// what was measured of the network to it: see HostChanged
	delay, row float64
}

// ask is some uses of a load that a host computes.
type ask struct {
	load    *load // nil: nobody wants the answer any more
	host    int
	uses    []int32 // that are not answered
	rows    int     // picks of the uses
	late    bool    // the next hosts were asked, too
	step    stages.StepID
	layer   int
	askedNS int64
}

func (a *away) init(c *Config) error {
	if c.Hosts > MaxHosts {
		return fmt.Errorf("expertio: %d hosts, there can be %d", c.Hosts, MaxHosts)
	}
	a.hosts = make([]host, c.Hosts)
	if c.Hosts > 0 {
		a.asks = make(map[uint64]*ask)
	}
	return nil
}

// hostChanged takes note of a host that may be asked from now on, or not any more.
func (c *Core) hostChanged(m *stages.HostChanged) error {
	a := &c.away
	if m.Host < 0 || m.Host >= len(a.hosts) || m.Experts < 0 || m.Asks < 0 || m.DelayNS < 0 || m.RowNS < 0 {
		return fmt.Errorf("expertio: %d experts and %d asks of host %d, there are %d hosts", m.Experts, m.Asks, m.Host, len(a.hosts))
	}
	h := &a.hosts[m.Host]
	if m.Gone {
		h.cost = 0
		if h.experts == 0 {
			return nil
		}
	}
	h.experts, h.credits, h.delay, h.row = m.Experts, m.Asks, m.DelayNS, m.RowNS
	a.some = false
	for i := range a.hosts {
		a.some = a.some || a.hosts[i].experts > 0
	}
	c.replace(c.makeTable())
	return nil
}

// next returns who computes an expert that neither its owner nor the host with a copy computes, but
// for the hosts that a set of bits excludes.
func (c *Core) next(key int, but uint32) int {
	h := c.nextHost(key, but)
	if h != here && score(key, h, c.away.hosts[h].experts) <= score(key, here, c.slots.live()) {
		return here
	}
	return h
}

// nextHost is next for what this machine cannot compute; here if no host can be asked.
func (c *Core) nextHost(key int, but uint32) int {
	best, most := here, 0.0
	for i := range c.away.hosts {
		if n := c.away.hosts[i].experts; n > 0 && but&(1<<i) == 0 {
			if s := score(key, i, n); best == here || s > most {
				best, most = i, s
			}
		}
	}
	return best
}

// score is what the owner of a key has most of: -weight/log(u), where u is evenly spread over 0 to
// 1 and follows from the two names.
func score(key, host, weight int) float64 {
	x := uint64(key)<<8 | uint64(uint8(host))
	x += 0x9e3779b97f4a7c15 // SplitMix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	u := (float64(x>>11) + 0.5) / (1 << 53)
	return -float64(weight) / math.Log(u)
}

// elsewhere reports whether a host that can be asked owns an expert.
func (c *Core) elsewhere(key int) bool { return c.away.some && c.away.table.Owners[key] != here }

// askFor asks hosts for the uses of a load that they own and that are not in memory here, where
// that is quicker than reading (saved.go). A host without a credit is passed over: its uses are
// read here, as are those of more picks than an ask may have.
func (c *Core) askFor(l *load, out *stages.Outbox) {
	if !c.away.some {
		return
	}
	batch := asking{load: l, first: c.away.last, table: c.away.tableOf(l.step.ID)}
	if batch.table == nil || !c.worthAsking(&batch) {
		return
	}
	tries := c.tries(l)
	for i := range l.uses {
		u := &l.uses[i]
		if !u.open() {
			continue
		}
		h := c.whoComputes(&batch, c.keyOf(l, i), u.failed)
		if h == here || c.saved(l, i, h) <= 0 {
			continue
		}
		if tries--; tries < 0 && c.askOf(&batch, i, h) {
			u.state = asked
			l.left--
		}
	}
	c.sendAsks(&batch, out)
}

// asking is asks that are being made for a load.
type asking struct {
	load  *load
	table *placement.Table
	first uint64         // the last ask before them
	of    [MaxHosts]*ask // of each host, the one that is being made
	uses  [MaxHosts]int  // that each host is asked for
	hedge bool
}

// askOf adds a use to what a host is asked for, unless it has too many picks for an ask or the host
// no credit.
func (c *Core) askOf(b *asking, use, h int) bool {
	picks := len(b.load.plan.Uses[use].Pairs)
	if picks > c.cfg.AskPicks {
		return false
	}
	a := b.of[h]
	if a == nil || a.rows+picks > c.cfg.AskPicks {
		if c.away.hosts[h].asks >= c.away.hosts[h].credits {
			return false
		}
		a = &ask{load: b.load, host: h, step: b.load.step.ID, layer: b.load.step.Layer, askedNS: c.notes.now}
		b.of[h] = a
		c.away.hosts[h].asks++
		c.away.last++
		c.away.asks[c.away.last] = a
	}
	a.uses, a.rows = append(a.uses, int32(use)), a.rows+picks
	b.load.uses[use].hosts++
	b.uses[h]++
	return true
}

func (c *Core) sendAsks(b *asking, out *stages.Outbox) {
	for id := b.first + 1; id <= c.away.last; id++ {
		a := c.away.asks[id]
		out.Asks = append(out.Asks, stages.Ask{ID: id, Host: a.host, Step: b.load.step, Epoch: b.table.Epoch, Plan: b.load.plan, Uses: a.uses, Hedge: b.hedge})
	}
}

// askOverdue asks the next hosts for what one is late with. The first answer counts; all have the
// same bits. Where no other host can be asked, the late one is waited for: reading here is for what
// no host answers.
func (c *Core) askOverdue(m *stages.AskOverdue, out *stages.Outbox) {
	a := c.away.asks[m.Ask]
	if a == nil || a.load == nil || a.late {
		return
	}
	a.late = true
	l := a.load
	batch := asking{load: l, first: c.away.last, table: c.away.tableOf(l.step.ID), hedge: true}
	for _, i := range a.uses {
		u := &l.uses[i]
		if u.state != asked {
			continue
		}
		if h := c.whoComputes(&batch, c.keyOf(l, int(i)), u.failed|1<<a.host); h != here && c.askOf(&batch, int(i), h) {
			l.hedged = true
		}
	}
	c.sendAsks(&batch, out)
}

// expertsAnswered takes what a host has computed. What it did not compute has no slot again, and
// goes another way.
func (c *Core) expertsAnswered(m *stages.ExpertsAnswered) {
	a := c.away.asks[m.Ask]
	if a == nil {
		return // it is over
	}
	c.noteAnswer(a, m)
	c.costOf(a, m)
	if m.Err != nil {
		c.giveBack(a, 1<<a.host)
		c.askOver(m.Ask, a)
		return
	}
	if m.Summed && a.load != nil && a.partly() {
		c.giveBack(a, 0)
		c.askOver(m.Ask, a)
		return
	}
	for _, answer := range m.Uses {
		at := slices.Index(a.uses, answer.Use)
		if at < 0 {
			continue // it has come twice
		}
		a.uses = slices.Delete(a.uses, at, at+1)
		if a.load == nil {
			continue
		}
		l, u := a.load, &a.load.uses[answer.Use]
		if u.hosts--; u.state != asked {
			continue // another host was quicker
		}
		u.state, u.rows = answered, answer.Rows
		l.answered++
		if u.noRead { // it was counted when it was to be read
			continue
		}
		c.layers[l.step.Layer].Misses++
		c.layers[l.step.Layer].Away++
		c.charge(l, int(answer.Use), missed, nil)
		c.noteUse(l, int(answer.Use), none, record.Away)
	}
	if len(a.uses) == 0 {
		c.askOver(m.Ask, a)
	}
}

// partly reports whether some use of an ask has been answered by another host, or is lost: then
// sums are of no use.
func (a *ask) partly() bool {
	return slices.ContainsFunc(a.uses, func(use int32) bool { return a.load.uses[use].state != asked })
}

// giveBack lets the uses of an ask that has failed be found elsewhere, unless another host is asked
// for them already, and not at the hosts of the set of bits but.
func (c *Core) giveBack(a *ask, but uint32) {
	if a.load == nil {
		return
	}
	for _, i := range a.uses {
		u := &a.load.uses[i]
		u.failed |= but
		if u.hosts--; u.hosts > 0 || u.state != asked {
			continue
		}
		if u.noRead {
			u.state = unread
			a.load.unread++
		} else {
			u.state = wanted
			a.load.left++
		}
	}
}

func (c *Core) askOver(id uint64, a *ask) {
	delete(c.away.asks, id)
	c.away.hosts[a.host].asks--
}

// abandon forgets who wanted the answers to a load's asks. The hosts still answer them.
func (c *Core) abandon(l *load) {
	for _, a := range c.away.asks {
		if a.load == l {
			a.load = nil
		}
	}
}
