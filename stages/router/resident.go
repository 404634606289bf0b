package router

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// picksAtOnce is how many picks are counted before other messages get their turn, unless a layer
// has more: some ten microseconds. One text has three times as many in 48 layers.
const picksAtOnce = 128

// counting is a step that the device has routed by itself and that is being counted.
type counting struct {
	stages.StepRouted
	layer int                 // the next one; none is left from Config.Layers on
	pasts []*past             // of its segments
	used  *stages.ExpertsUsed // nil unless Config.Far
}

// stepRouted counts what the device has routed by itself. Every expert is in memory then, so each
// use is a hit, unless the expert is far, and nothing need be predicted.
//
// The step's callers have just been answered, and the next step is either ready to begin or waiting
// for their next tokens. So counting starts later and goes piece by piece, with other messages in
// between. Any other message to the router comes after the whole step, see finish.
func (c *Core) stepRouted(m *stages.StepRouted, out *stages.Outbox) error {
	if m.Batch == nil || len(m.Picks) != (c.cfg.Layers-c.cfg.First)*len(m.Batch.Rows)*c.cfg.TopK {
		return fmt.Errorf("router: %d picks of %v in %d layers from layer %d on, %d each", len(m.Picks), &m.Step, c.cfg.Layers, c.cfg.First, c.cfg.TopK)
	}
	now := &c.counting
	now.Take(m)
	now.layer, now.pasts = c.cfg.First, now.pasts[:0]
	if now.used = nil; c.cfg.Far {
		now.used = out.Spent().ExpertsUsed()
		now.used.Urgent, now.used.Rows = now.Batch.Urgent, len(now.Batch.Rows)
	}
	for i := range now.Batch.Segments {
		p := c.pastOf(now.Batch.Segments[i].Seq)
		p.step, p.layer = now.ID, c.cfg.Layers-1
		now.pasts = append(now.pasts, p)
	}
	out.Send(stages.Router, out.Spent().CountPicks())
	return nil
}

// countPicks counts a piece of the step, and asks to be called again if there is more.
func (c *Core) countPicks(out *stages.Outbox) {
	for picks := 0; c.counting.layer < c.cfg.Layers; {
		if picks >= picksAtOnce {
			out.Send(stages.Router, out.Spent().CountPicks())
			return
		}
		picks += c.countLayer(out)
	}
}

// finish counts what is left of the step.
func (c *Core) finish(out *stages.Outbox) {
	for c.counting.layer < c.cfg.Layers {
		c.countLayer(out)
	}
}

// countLayer counts a layer of the step and returns how many picks it has.
func (c *Core) countLayer(out *stages.Outbox) int {
	m, k := &c.counting, c.cfg.TopK
	n := len(m.Batch.Rows) * k
	picks := m.Picks[(m.layer-c.cfg.First)*n:][:n]
	c.countUses(m.ID, m.layer, picks, out)
	c.notePicks(m.Head(), m.layer, picks, out)
	for i, p := range m.pasts {
		g := &m.Batch.Segments[i]
		c.countSame(m.layer, p, picks[g.Row*k:][:g.Rows*k])
	}
	if m.layer++; m.layer == c.cfg.Layers && m.used != nil {
		out.Send(stages.ExpertIO, m.used)
		m.used = nil
	}
	return n
}

// countUses counts a layer's picks, and each different expert as a hit, or as a miss if it is far.
func (c *Core) countUses(step stages.StepID, layer int, picks []int32, out *stages.Outbox) {
	st := &c.layers[layer]
	c.rows[layer] += int64(len(picks) / c.cfg.TopK)
	uses := &out.Records().Uses
	for _, e := range picks {
		if e >= 0 {
			st.Uses[e]++
			c.counts[e]++
		}
	}
	for _, e := range picks {
		if e < 0 || c.counts[e] == 0 {
			continue
		}
		found := record.Resident
		if c.counting.Near.Has(layer-c.cfg.First, c.cfg.Experts, e) {
			st.Hits++
		} else {
			st.Misses++
			found = record.Far
		}
		uses.Add(record.Use{
			Step: uint64(step), AtNS: out.NowNS, Layer: int32(layer), Expert: e, Slot: -1,
			Rows: c.counts[e], Found: found,
		})
		if u := c.counting.used; u != nil {
			key := int32(layer*c.cfg.Experts) + e
			u.Uses = append(u.Uses, stages.KeyUse{Key: key, Rows: c.counts[e]})
		}
		c.counts[e] = 0
	}
}

// countSame counts those picks of a sequence's rows that the row before picked too, and keeps the
// picks of the last row.
func (c *Core) countSame(layer int, p *past, picks []int32) {
	k, st := c.cfg.TopK, &c.layers[layer]
	before := p.picks[layer]
	for ; len(picks) > 0; picks = picks[k:] {
		now := picks[:k]
		if now[0] < 0 {
			continue
		}
		if before != nil {
			st.Picks += int64(k)
			for _, e := range before {
				c.mark[e] = true
			}
			for _, e := range now {
				if c.mark[e] {
					st.SamePicks++
				}
			}
			for _, e := range before {
				c.mark[e] = false
			}
		}
		before = now
	}
	p.picks[layer] = append(p.picks[layer][:0], before...)
}
