package expertio

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/invariants"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/expertio/policy"
)

// state of a slot. A slot is in use while it is resident and pinned.
type state uint8

const (
	free state = iota
	filling
	resident
	gone // given up; its memory is the system's
)

// slot is one expert's place in memory.
type slot struct {
	state       state
	speculative bool        // being read for a prediction, or warm
	rank        stages.Rank // while filling: of the read
	predicted   bool        // read for a prediction and not used since
	guessed     policy.Side // if predicted: of the step that it was read for
	late        bool        // being read, and the read was reported not to end
	warm        bool        // being read because earlier runs used the expert
	doomed      bool        // being read, and to be emptied when read unless a load waits by then
	recalled    bool        // being read, and nobody needs it any more
	owed        owed        // what nobody has paid for: see costs.go
	request     request     // of the last read into it
	gen         uint32      // counts reads into the slot
	key         int         // layer·Experts + expert, or -1 when free or gone
	pins        int         // uses that have it
	waiting     []waiter    // while filling
}

// Side is that of policy.Order: of steps that decode, or of others.
type Side = policy.Side

// Order decides which expert leaves its slot first. Its methods are those of policy.Order, which is
// what engines use.
type Order interface {
	Visit(of Side, layer, rows int)
	Use(key, rows int)
	Expect(of Side, key int, chance float64)
	Seed(key int, chance float64)
	Chance(key int) float64
	Len() int
	Add(key int)
	Hold(of Side, key int)
	Remove(key int)
	Evict() (key int, ok bool)
	Next() (key int, ok bool)
}

// slots are all slots, in a pool for each part of the device. A slot can be taken if it is empty,
// or if its expert may leave: a resident expert without pins is in its pool's order.
type slots struct {
	experts   int // of a layer
	all       []slot
	byKey     []int32 // [keys], slot+1, or 0 for none
	pools     []pool
	borders   stages.Borders
	least     int     // that there always are
	residents int     // slots that hold an expert
	evictions []int64 // [layers]
	notes     *notes
}

// init makes the slots. Mapped experts have theirs from the start and keep them.
func (p *slots) init(cfg *Config) error {
	p.experts = cfg.Experts
	p.all = make([]slot, cfg.Slots)
	p.byKey = make([]int32, cfg.Layers*cfg.Experts)
	p.evictions = make([]int64, cfg.Layers)
	if cfg.Mapped {
		for i := range p.all {
			p.all[i].state, p.all[i].key = resident, i
			p.byKey[i] = int32(i) + 1
		}
		p.residents = cfg.Slots
		p.pools = []pool{{end: stages.SlotID(cfg.Slots)}}
		return nil
	}
	for i := range p.all {
		p.all[i].key = -1
	}
	p.borders = cfg.Borders
	return p.makePools(cfg)
}

// places returns where each expert of a layer is.
func (p *slots) places(layer int) []stages.Place {
	places := make([]stages.Place, p.experts)
	for e, slot := range p.byKey[layer*p.experts : (layer+1)*p.experts] {
		switch {
		case slot == 0:
		case p.all[slot-1].state == filling:
			places[e] = stages.BeingRead
		default:
			places[e] = stages.InSlot
		}
	}
	return places
}

// has reports whether there is such a slot.
func (p *slots) has(id stages.SlotID) bool { return id >= 0 && int(id) < len(p.all) }

func (p *slots) at(id stages.SlotID) *slot { return &p.all[id] }

// live returns the number of slots, without those that were given up.
func (p *slots) live() (n int) {
	for i := range p.pools {
		n += p.pools[i].live()
	}
	return n
}

// vacant returns how many slots are empty.
func (p *slots) vacant() (n int) {
	for i := range p.pools {
		n += len(p.pools[i].empty)
	}
	return n
}

func (p *slots) find(key int) (stages.SlotID, bool) {
	i := p.byKey[key]
	return stages.SlotID(i - 1), i != 0
}

// routed tells the order what a layer's router picked for some rows.
func (p *slots) routed(side policy.Side, layer, rows int, uses []stages.ExpertUse) {
	order := p.of(layer).order
	if order == nil {
		return
	}
	order.Visit(side, layer, rows)
	for _, u := range uses {
		key := layer*p.experts + int(u.Expert)
		order.Use(key, len(u.Pairs))
		if _, ok := p.find(key); ok { // it must stay until the load has pinned it
			order.Expect(side, key, 1)
		}
	}
}

// predict tells the order the chance that an expert is picked at its layer's next turn.
func (p *slots) predict(side policy.Side, key int, chance float32) {
	if order := p.order(key); order != nil {
		order.Expect(side, key, float64(chance))
	}
}

// take takes a slot of its pool for a new expert, an empty one or that of the expert that should
// leave first, and marks it as filling. wasted is what was evicted unused.
func (p *slots) take(key int) (id stages.SlotID, wasted waste, ok bool) {
	if id, wasted, ok = p.vacate(p.of(key / p.experts)); !ok {
		return id, wasted, ok
	}
	s := p.at(id)
	s.state, s.key, s.predicted, s.speculative, s.warm = filling, key, false, false, false
	s.doomed, s.recalled, s.late, s.owed = false, false, false, nothing
	s.gen++
	p.byKey[key] = int32(id) + 1
	return id, wasted, true
}

// giveUp takes a slot out of its pool until comeBack, of the pool that keeps the largest share of
// its own and more than a least number. It returns what take does.
func (p *slots) giveUp(least int) (id stages.SlotID, wasted waste, ok bool) {
	o := p.most(least)
	if o == nil {
		return none, noWaste, false
	}
	if id, wasted, ok = p.vacate(o); !ok {
		return id, wasted, ok
	}
	s := p.at(id)
	s.state, s.key, s.predicted = gone, -1, false
	o.gone = append(o.gone, id)
	return id, wasted, true
}

// comeBack returns a slot that was given up to its pool, empty: the last one of the pool that has
// lost the largest share.
func (p *slots) comeBack() {
	o := p.fewest()
	last := len(o.gone) - 1
	id := o.gone[last]
	o.gone = o.gone[:last]
	p.at(id).state = free
	o.empty = append(o.empty, id)
}

// vacate finds an empty slot of a pool, or evicts an expert from one.
func (p *slots) vacate(o *pool) (id stages.SlotID, wasted waste, ok bool) {
	if last := len(o.empty) - 1; last >= 0 {
		id, o.empty = o.empty[last], o.empty[:last]
		return id, noWaste, true
	}
	if o.order == nil {
		return none, noWaste, false
	}
	old, ok := o.order.Evict()
	if !ok {
		return none, noWaste, false
	}
	id, _ = p.find(old)
	p.byKey[old] = 0
	p.residents--
	p.evicted(id)
	return id, p.at(id).waste(), true
}

// pin keeps a slot's expert where it is, for a step of a side.
func (p *slots) pin(side policy.Side, id stages.SlotID) {
	s := p.at(id)
	if order := p.order(s.key); order != nil {
		order.Hold(side, s.key)
	}
	s.pins++
	s.doomed = false
}

// clear frees the slot of a resident expert without pins.
func (p *slots) clear(id stages.SlotID) {
	s := p.at(id)
	p.order(s.key).Remove(s.key)
	p.byKey[s.key] = 0
	p.residents--
	p.evicted(id)
	s.state, s.key, s.predicted, s.doomed = free, -1, false, false
	p.rest(id)
}

// unpin removes a pin. A resident expert without pins may leave.
func (p *slots) unpin(id stages.SlotID) error {
	s := p.at(id)
	if s.pins <= 0 {
		return fmt.Errorf("expertio: slot %d came home twice", id)
	}
	s.pins--
	p.rest(id)
	return nil
}

// rest puts a slot without pins where take finds it.
func (p *slots) rest(id stages.SlotID) {
	s, o := p.at(id), p.holder(id)
	switch {
	case s.pins > 0 || o.order == nil:
	case s.state == resident:
		o.order.Add(s.key)
	case s.state == free:
		o.empty = append(o.empty, id)
	}
}

// filled makes a slot that was being read resident.
func (p *slots) filled(id stages.SlotID) {
	s := p.at(id)
	s.state, s.speculative, s.warm = resident, false, false
	s.waiting = dropAll(s.waiting)
	p.residents++
	p.rest(id)
}

// spoil frees a slot whose read has failed. Loads that have it pinned give it back later.
func (p *slots) spoil(id stages.SlotID) {
	s := p.at(id)
	p.byKey[s.key] = 0
	s.state, s.key, s.predicted, s.speculative, s.warm, s.doomed = free, -1, false, false, false, false
	s.waiting = dropAll(s.waiting)
	p.rest(id)
}

// forget removes the pin of a load that is given up.
func (p *slots) forget(id stages.SlotID, l *load) {
	s := p.at(id)
	for i, w := range s.waiting {
		if w.load == l {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			break
		}
	}
	err := p.unpin(id)
	invariants.Check(err == nil, "%v", err)
}

// dropAll empties a list and clears its memory.
func dropAll(w []waiter) []waiter {
	clear(w)
	return w[:0]
}
