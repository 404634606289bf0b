package dispatch

import "github.com/moeflux/moeflux-actor/stages"

// picked is what one layer of a step has picked.
type picked struct {
	picks  []int32  // [experts]; the negative number once the first pick has been charged
	near   []uint64 // [experts/64], all bits set
	shares []share  // by number of picks
}

// share is what one pick of an expert pays of its record, and what is left over.
type share struct{ each, over int64 } // bytes; the first pick pays both

func newPicked(experts int) picked {
	p := picked{picks: make([]int32, experts), near: make([]uint64, stages.NearWords(experts))}
	for i := range p.near {
		p.near[i] = ^uint64(0)
	}
	return p
}

// divide makes the shares of a record of so many bytes for each number of picks up to most.
func (p *picked) divide(bytes int64, most int) {
	for n := int64(len(p.shares)); n <= int64(most); n++ {
		p.shares = append(p.shares, share{bytes / max(n, 1), bytes % max(n, 1)})
	}
}

// charge adds what the device has chosen in a step to the costs of its segments: each pick finds
// its expert near, or brings it from the host's memory, and a record that several segments need in
// a layer is divided among them by picks. Until the picks are read back nobody knows them, so a
// step that fails before has none.
func (c *Core) charge(b *stages.Batch, m *stages.StepRouted) {
	n := len(b.Rows) * c.cfg.TopK
	c.picked.divide(int64(c.cfg.RecordBytes), n) // a faulty device may repeat an expert in a row
	for i := range len(m.Picks) / n {
		near := c.picked.near
		if words := len(near); len(m.Near) > 0 {
			near = m.Near[i*words:][:words]
		}
		c.chargeLayer(b, m.Picks[i*n:][:n], near)
	}
}

// chargeLayer is charge for the picks of a layer with experts, [rows][k]. The step's answers wait
// for it, so it does not divide for each pick, and does not branch on whether a pick is the first
// of its expert, which a processor cannot predict.
func (c *Core) chargeLayer(b *stages.Batch, layer []int32, near []uint64) {
	p, k := &c.picked, c.cfg.TopK
	clear(p.picks)
	for _, e := range layer {
		if e >= 0 { // else the row could not be routed
			p.picks[e]++
		}
	}
	for i := range b.Segments {
		g := &b.Segments[i]
		p.pay(&b.Costs[i], layer[g.Row*k:(g.Row+g.Rows)*k], near)
	}
}

// pay adds what a segment's picks pay to its costs.
func (p *picked) pay(to *stages.Cost, picks []int32, near []uint64) {
	var hits, found, slots, bytes int64
	for _, e := range picks {
		if e < 0 {
			continue
		}
		n := p.picks[e]
		paid := n >> 31          // -1 once the first pick has been charged
		all := (n ^ paid) - paid // without its sign
		p.picks[e] = -all
		is := int64(near[uint32(e)/64] >> (uint32(e) % 64) & 1) // 1 for an expert that is near
		s := &p.shares[all]
		pays := s.each + s.over&^int64(paid)
		hits, found = hits+is, found+1
		slots, bytes = slots+pays&-is, bytes+pays
	}
	to.Hit, to.Missed = to.Hit+hits, to.Missed+found-hits
	to.SlotBytes, to.HostBytes = to.SlotBytes+slots, to.HostBytes+bytes-slots
}
