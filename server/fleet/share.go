package fleet

import (
	"math"
	"time"
)

// How expert memory is shared out.
const (
	halfLife   = 2 * time.Minute  // of what is known of use
	levelEvery = 10 * time.Second // shares are looked at again
	levelShare = 16               // a change of less than one part in this many of all is none
	baseWeight = 0.1              // of a model that nobody uses
)

// busyness is the share of the last minutes in which a model had users, the latest counting most.
type busyness struct {
	level float64 // at the time at
	at    time.Duration
	on    bool
}

// now returns the share.
func (b *busyness) now(now time.Duration) float64 {
	keep := math.Exp2(-float64(now-b.at) / float64(halfLife))
	if b.on {
		return 1 - (1-b.level)*keep
	}
	return b.level * keep
}

// set says whether there are users from now on.
func (b *busyness) set(now time.Duration, on bool) { b.level, b.at, b.on = b.now(now), now, on }

// level shares out the memory for expert slots: each model gets its least, and of the rest by how
// much it is used, up to its most. Those that get less come first, so that there is room for those
// that get more.
func (c *Core) level(now time.Duration) {
	due := c.levelled == 0 // something was loaded or unloaded
	if !due && now-c.levelled < levelEvery {
		return
	}
	c.levelled = max(now, 1)
	pool, shares := c.shares(now)
	moved := false
	for i, s := range shares {
		moved = moved || abs(s-c.models[i].share) > pool/levelShare
	}
	if !due && !moved {
		return
	}
	for _, fewer := range []bool{true, false} {
		for i, s := range shares {
			m := &c.models[i]
			if s == m.share || (s < m.share) != fewer || m.phase != here && m.phase != loading {
				continue
			}
			if m.share = s; m.phase == here {
				c.say(Command{Kind: Share, Model: i, Bytes: s})
			}
		}
	}
}

// shares returns what all expert slots may take, and each model's share of that.
func (c *Core) shares(now time.Duration) (pool int64, shares []int64) {
	shares = make([]int64, len(c.models))
	rest := c.budget
	var open []int // those that may have more
	for i := range c.models {
		m := &c.models[i]
		switch {
		case m.phase == away:
			continue
		case m.phase == leaving, m.phase == loading && m.share > 0: // that stays until it is gone, or here
			rest -= m.Need.Fixed + m.share
			shares[i] = m.share
			continue
		}
		rest -= m.Need.least()
		pool += m.Need.Least
		if shares[i] = m.Need.Least; m.Need.Most > m.Need.Least {
			open = append(open, i)
		}
	}
	pool += max(rest, 0)
	for len(open) > 0 && rest > 0 {
		open, rest = c.pour(now, open, rest, shares)
	}
	return pool, shares
}

// pour gives the open models of the rest by how much they are used. Those that are full with that
// are open no more, and what they do not take is left for another round.
func (c *Core) pour(now time.Duration, open []int, rest int64, shares []int64) (still []int, left int64) {
	var weights float64
	for _, i := range open {
		weights += baseWeight + c.models[i].busy.now(now)
	}
	part := func(i int) int64 {
		return int64(float64(rest) * (baseWeight + c.models[i].busy.now(now)) / weights)
	}
	left = rest
	for _, i := range open {
		m := &c.models[i]
		if room := m.Need.Most - shares[i]; part(i) >= room {
			shares[i], left = m.Need.Most, left-room
		} else {
			still = append(still, i)
		}
	}
	if len(still) < len(open) {
		return still, left
	}
	for _, i := range open {
		shares[i] += part(i)
	}
	return nil, 0
}

func abs(n int64) int64 { return max(n, -n) }
