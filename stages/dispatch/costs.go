package dispatch

import "github.com/moeflux/moeflux-actor/stages"

// picked counts the picks of one layer by expert.
type picked struct {
	all   []int // [experts], of the step
	given []int // of those, that are charged
}

func newPicked(experts int) picked {
	return picked{make([]int, experts), make([]int, experts)}
}

// charge adds what the device has chosen in a step to the costs of its segments: each pick finds
// its expert in memory, and a record that several segments need in a layer is divided among them by
// picks. Until the picks are read back nobody knows them, so a step that fails before has none.
func (c *Core) charge(b *stages.Batch, picks []int32) {
	k, n := c.cfg.TopK, len(b.Rows)*c.cfg.TopK
	for ; len(picks) > 0; picks = picks[n:] {
		layer := picks[:n]
		for _, e := range layer {
			if e >= 0 { // else the row could not be routed
				c.picked.all[e]++
			}
		}
		for i := range b.Segments {
			g := &b.Segments[i]
			c.chargeSegment(&b.Costs[i], layer[g.Row*k:(g.Row+g.Rows)*k])
		}
		for _, e := range layer {
			if e >= 0 {
				c.picked.all[e], c.picked.given[e] = 0, 0
			}
		}
	}
}

func (c *Core) chargeSegment(to *stages.Cost, picks []int32) {
	p, bytes := &c.picked, int64(c.cfg.RecordBytes)
	for _, e := range picks {
		if e < 0 {
			continue
		}
		to.Hit++
		if all := p.all[e]; all == 1 {
			to.SlotBytes += bytes
		} else {
			to.SlotBytes += stages.Share(bytes, p.given[e], p.given[e]+1, all)
			p.given[e]++
		}
	}
}
