package expertio

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/invariants"
	"github.com/moeflux/moeflux-actor/stages"
)

// state of a slot. A slot is in use while it is resident and pinned.
type state uint8

const (
	free state = iota
	filling
	resident
)

// slot is one expert's place in memory.
type slot struct {
	state       state
	speculative bool    // being read for a prediction
	foretold    bool    // read for a prediction and not used since
	gen         uint32  // counts reads into the slot
	key         int     // layer·Experts + expert, or -1 when free
	pins        int     // waves that have it
	waiting     []*wave // while filling
}

// slots is the pool. Free slots and resident ones without pins form the evictable list, the next to go at its end.
type slots struct {
	all   []slot
	byKey []int32 // slot+1 of each key, 0 for none
	n     int     // evictable
	ring  int32   // index of the list's sentinel in links
	links []link  // [slots+1], most recently used first
}

type link struct{ prev, next int32 }

func (p *slots) init(n, keys int) {
	p.all = make([]slot, n)
	p.byKey = make([]int32, keys)
	p.links = make([]link, n+1)
	p.ring = int32(n)
	p.links[n] = link{p.ring, p.ring}
	for i := range p.all {
		p.all[i].key = -1
		p.pushFront(int32(i)) // the first is taken first
	}
}

// has reports whether there is such a slot.
func (p *slots) has(id stages.SlotID) bool { return id >= 0 && int(id) < len(p.all) }

func (p *slots) at(id stages.SlotID) *slot { return &p.all[id] }

// spare returns how many slots could be taken now.
func (p *slots) spare() int { return p.n }

func (p *slots) find(key int) (stages.SlotID, bool) {
	i := p.byKey[key]
	return stages.SlotID(i - 1), i != 0
}

// settle makes an expert resident without a read.
func (p *slots) settle(id stages.SlotID, key int) {
	s := p.at(id)
	s.state, s.key = resident, key
	p.byKey[key] = int32(id) + 1
}

// take empties the least recently used evictable slot for a new expert, which is then filling. evicted is the key
// of a foretold expert that was thrown out unused, or -1.
func (p *slots) take(key int) (id stages.SlotID, evicted int, ok bool) {
	i := p.links[p.ring].prev
	if i == p.ring {
		return 0, -1, false
	}
	p.unlink(i)
	s := &p.all[i]
	evicted = -1
	if s.key >= 0 {
		p.byKey[s.key] = 0
		if s.foretold {
			evicted = s.key
		}
	}
	s.state, s.key, s.foretold, s.speculative = filling, key, false, false
	s.gen++
	p.byKey[key] = i + 1
	return stages.SlotID(i), evicted, true
}

// pin keeps a slot's expert where it is.
func (p *slots) pin(id stages.SlotID) {
	s := p.at(id)
	if s.pins == 0 && s.state == resident {
		p.unlink(int32(id))
	}
	s.pins++
}

// unpin takes one pin back; the last makes a resident slot evictable.
func (p *slots) unpin(id stages.SlotID) error {
	s := p.at(id)
	if s.pins <= 0 {
		return fmt.Errorf("expertio: slot %d came home twice", id)
	}
	s.pins--
	if s.pins == 0 && s.state == resident {
		p.pushFront(int32(id))
	}
	if s.pins == 0 && s.state == free {
		p.pushBack(int32(id))
	}
	return nil
}

// filled makes a slot that was being read resident.
func (p *slots) filled(id stages.SlotID) {
	s := p.at(id)
	s.state, s.speculative = resident, false
	s.waiting = dropAll(s.waiting)
	if s.pins == 0 {
		p.pushFront(int32(id))
	}
}

// spoil makes a slot free whose read has failed. Waves that have it pinned give it back later.
func (p *slots) spoil(id stages.SlotID) {
	s := p.at(id)
	p.byKey[s.key] = 0
	s.state, s.key, s.foretold, s.speculative = free, -1, false, false
	s.waiting = dropAll(s.waiting)
	if s.pins == 0 {
		p.pushBack(int32(id))
	}
}

// forget takes the pin of a wave that is given up.
func (p *slots) forget(id stages.SlotID, w *wave) {
	s := p.at(id)
	for i, q := range s.waiting {
		if q == w {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			break
		}
	}
	err := p.unpin(id)
	invariants.Check(err == nil, "%v", err)
}

func (p *slots) unlink(i int32) {
	l := p.links[i]
	p.links[l.prev].next = l.next
	p.links[l.next].prev = l.prev
	p.n--
}

func (p *slots) pushFront(i int32) { p.insert(i, p.ring, p.links[p.ring].next) }
func (p *slots) pushBack(i int32)  { p.insert(i, p.links[p.ring].prev, p.ring) }

func (p *slots) insert(i, prev, next int32) {
	p.links[i] = link{prev, next}
	p.links[prev].next = i
	p.links[next].prev = i
	p.n++
}

// dropAll empties a list and lets go of what it held.
func dropAll(w []*wave) []*wave {
	clear(w)
	return w[:0]
}
