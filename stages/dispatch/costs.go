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
// its expert near, or brings it from the host's memory, and a record that several segments need in
// a layer is divided among them by picks. Until the picks are read back nobody knows them, so a
// step that fails before has none.
func (c *Core) charge(b *stages.Batch, m *stages.StepRouted) {
	n := len(b.Rows) * c.cfg.TopK
	for i := range len(m.Picks) / n {
		c.chargeLayer(b, i, m.Picks[i*n:][:n], m.Near)
	}
}

// chargeLayer is charge for the picks of the n-th layer with experts, [rows][k]. The step's answers
// wait for it, so it divides once for an expert and not for each pick. The first pick pays what is
// left over.
func (c *Core) chargeLayer(b *stages.Batch, n int, layer []int32, near stages.NearSets) {
	p, k, bytes := &c.picked, c.cfg.TopK, int64(c.cfg.RecordBytes)
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
		pay(&b.Costs[f.segment], near.Has(n, len(p.picks), f.expert), bytes%p.picks[f.expert])
	}
	for i := range b.Segments {
		g, to := &b.Segments[i], &b.Costs[i]
		for _, e := range layer[g.Row*k : (g.Row+g.Rows)*k] {
			if e < 0 {
				continue
			}
			is := near.Has(n, len(p.picks), e)
			if pay(to, is, p.each[e]); is {
				to.Hit++
			} else {
				to.Missed++
			}
		}
	}
	for _, f := range p.experts {
		p.picks[f.expert] = 0
	}
	p.experts = p.experts[:0]
}

// pay adds bytes of an expert's record that was near, or else in the host's memory.
func pay(to *stages.Cost, near bool, bytes int64) {
	if near {
		to.SlotBytes += bytes
	} else {
		to.HostBytes += bytes
	}
}
