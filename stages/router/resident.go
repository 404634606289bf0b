package router

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// stepRouted counts what the device has routed by itself. Every expert is in memory then, so each
// use is a hit and nothing need be predicted.
func (c *Core) stepRouted(m *stages.StepRouted, out *stages.Outbox) error {
	if m.Batch == nil || len(m.Picks) != (c.cfg.Layers-c.cfg.First)*len(m.Batch.Rows)*c.cfg.TopK {
		return fmt.Errorf("router: %d picks of %v in %d layers from layer %d on, %d each", len(m.Picks), &m.Step, c.cfg.Layers, c.cfg.First, c.cfg.TopK)
	}
	n := len(m.Batch.Rows) * c.cfg.TopK
	c.pasts = c.pasts[:0]
	for i := range m.Batch.Segments {
		p := c.pastOf(m.Batch.Segments[i].Seq)
		p.step, p.layer = m.ID, c.cfg.Layers-1
		c.pasts = append(c.pasts, p)
	}
	for layer, at := c.cfg.First, 0; layer < c.cfg.Layers; layer, at = layer+1, at+n {
		c.countUses(m.ID, layer, m.Picks[at:at+n], out)
		c.notePicks(m.Head(), layer, m.Picks[at:at+n], out)
		for i, p := range c.pasts {
			g := &m.Batch.Segments[i]
			c.countSame(layer, p, m.Picks[at+g.Row*c.cfg.TopK:][:g.Rows*c.cfg.TopK])
		}
	}
	return nil
}

// countUses counts a layer's picks, and each different expert as a hit.
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
		st.Hits++
		uses.Add(record.Use{
			Step: uint64(step), AtNS: out.NowNS, Layer: int32(layer), Expert: e, Slot: -1, Rows: c.counts[e], Found: record.Resident,
		})
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
