package expertio

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/expertio/policy"
)

// pool is the slots in the memory of one part of the device, for the experts of the layers that it
// computes. A device that is not several has one.
type pool struct {
	first, end stages.SlotID
	empty      []stages.SlotID
	gone       []stages.SlotID
	order      Order // which expert leaves first; nil if none ever does
}

// makePools divides the slots, whose numbers are in the order of the parts.
func (p *slots) makePools(cfg *Config) error {
	parts := cfg.Parts
	if len(parts) == 0 {
		parts = []int{cfg.Slots}
	}
	sum := 0
	for i, n := range parts {
		sum += n
		if _, end := cfg.Borders.Range(i, cfg.Layers); end <= cfg.First && n == 0 {
			continue // it has no experts
		}
		if n < cfg.WaveSlots {
			return fmt.Errorf("%d slots are less than a wave of %d experts", n, cfg.WaveSlots)
		}
		p.least += cfg.WaveSlots
	}
	if len(parts) > 1 && (sum != cfg.Slots || len(parts) != len(cfg.Borders)+1 || cfg.Order != nil) {
		return fmt.Errorf("%d slots in parts of %d, with borders %v", cfg.Slots, cfg.Parts, cfg.Borders)
	}
	first := stages.SlotID(0)
	for _, n := range parts {
		o := pool{first: first, end: first + stages.SlotID(n), order: cfg.Order}
		first = o.end
		for id := o.end - 1; id >= o.first; id-- { // the first is taken first
			o.empty = append(o.empty, id)
		}
		if o.order == nil {
			order, err := policy.New(policy.Config{Layers: cfg.Layers, Experts: cfg.Experts})
			if err != nil {
				return err
			}
			o.order = order
		}
		p.pools = append(p.pools, o)
	}
	return nil
}

// of returns the pool of a layer's experts.
func (p *slots) of(layer int) *pool {
	if len(p.pools) == 1 {
		return &p.pools[0]
	}
	return &p.pools[p.borders.Part(layer)]
}

// holder returns the pool that has a slot.
func (p *slots) holder(id stages.SlotID) *pool {
	i := 0
	for id >= p.pools[i].end {
		i++
	}
	return &p.pools[i]
}

// order returns what decides when an expert leaves; nil if none ever does.
func (p *slots) order(key int) Order { return p.of(key / p.experts).order }

// chance returns how likely an expert is picked at its layer's next turn.
func (p *slots) chance(key int) float64 { return p.order(key).Chance(key) }

// live returns the number of slots, without those that were given up.
func (o *pool) live() int { return int(o.end-o.first) - len(o.gone) }

// spare returns how many slots could be taken now.
func (o *pool) spare() int {
	n := len(o.empty)
	if o.order != nil {
		n += o.order.Len()
	}
	return n
}

// spareFor reports whether there is a slot for an expert with this chance: an empty one, or that of
// the expert that should leave next, if that is less likely to be picked at its layer's next turn.
func (o *pool) spareFor(chance float64) bool {
	if len(o.empty) > 0 {
		return true
	}
	if o.order == nil {
		return false
	}
	next, ok := o.order.Next()
	return ok && o.order.Chance(next) < chance
}

// fullness returns what share of the pool's slots there are.
func (o *pool) fullness() float64 {
	if o.first == o.end {
		return 1
	}
	return float64(o.live()) / float64(o.end-o.first)
}

// most returns the pool of which the largest share is left, of those that may lose a slot: nil if
// none may, since a wave needs so many.
func (p *slots) most(least int) (most *pool) {
	for i := range p.pools {
		if o := &p.pools[i]; o.live() > least && (most == nil || o.fullness() > most.fullness()) {
			most = o
		}
	}
	return most
}

// fewest returns the pool of which the smallest share is left.
func (p *slots) fewest() *pool {
	few := &p.pools[0]
	for i := range p.pools {
		if o := &p.pools[i]; o.fullness() < few.fullness() {
			few = o
		}
	}
	return few
}
