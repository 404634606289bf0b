package dispatch

import "github.com/moeflux/moeflux-actor/stages"

// picked is what one layer of a step has picked.
type picked struct {
	picks   []int64 // [experts]
	each    []int64 // [experts]: the bytes that each pick of the expert pays
	experts []first // those with picks
}

// first is an expert and the segment of its first pick.
type first struct {
	expert  int32
	segment int
}

func newPicked(experts int) picked {
	return picked{picks: make([]int64, experts), each: make([]int64, experts), experts: make([]first, 0, experts)}
}

// charge adds what the device has chosen in a step to the costs of its segments: each pick finds
// its expert in memory, and a record that several segments need in a layer is divided among them by
// picks. Until the picks are read back nobody knows them, so a step that fails before has none.
func (c *Core) charge(b *stages.Batch, picks []int32) {
	k, n := c.cfg.TopK, len(b.Rows)*c.cfg.TopK
	for ; len(picks) > 0; picks = picks[n:] {
		c.chargeLayer(b, k, picks[:n])
	}
}

// chargeLayer is charge for the picks of a layer, [rows][k]. The step's answers wait for it, so it
// divides once for an expert and not for each pick. The first pick pays what is left over.
func (c *Core) chargeLayer(b *stages.Batch, k int, layer []int32) {
	p, bytes := &c.picked, int64(c.cfg.RecordBytes)
	for i := range b.Segments {
		g := &b.Segments[i]
		for _, e := range layer[g.Row*k : (g.Row+g.Rows)*k] {
			if e < 0 { // the row could not be routed
				continue
			}
			if p.picks[e] == 0 {
				p.experts = append(p.experts, first{e, i})
			}
			p.picks[e]++
		}
	}
	for _, f := range p.experts {
		p.each[f.expert] = bytes / p.picks[f.expert]
		b.Costs[f.segment].SlotBytes += bytes % p.picks[f.expert]
	}
	for i := range b.Segments {
		g, to := &b.Segments[i], &b.Costs[i]
		for _, e := range layer[g.Row*k : (g.Row+g.Rows)*k] {
			if e >= 0 {
				to.Hit++
				to.SlotBytes += p.each[e]
			}
		}
	}
	for _, f := range p.experts {
		p.picks[f.expert] = 0
	}
	p.experts = p.experts[:0]
}
