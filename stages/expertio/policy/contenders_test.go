package policy_test

import (
	"container/list"
	"math/rand/v2"

	"github.com/moeflux/moeflux-actor/stages/expertio/policy"
)

// nothing provides the calls that a contender does not need.
type nothing struct{}

func (nothing) visit(*visit)      {}
func (nothing) hold([]use, []use) {}
func (nothing) hit(int32)         {}
func (nothing) release([]use)     {}

// queue is a list of keys with an index.
type queue struct {
	l  *list.List
	at map[int32]*list.Element
}

func newQueue() queue { return queue{list.New(), map[int32]*list.Element{}} }

func (q queue) len() int         { return q.l.Len() }
func (q queue) has(k int32) bool { return q.at[k] != nil }
func (q queue) push(k int32)     { q.at[k] = q.l.PushFront(k) }
func (q queue) touch(k int32)    { q.l.MoveToFront(q.at[k]) }
func (q queue) remove(k int32)   { q.l.Remove(q.at[k]); delete(q.at, k) }
func (q queue) oldest() int32    { return q.l.Back().Value.(int32) }
func (q queue) trim(n int) {
	for q.len() > n {
		q.remove(q.oldest())
	}
}

// pop removes the oldest key that is not held; -1 if there is none.
func (q queue) pop(held []bool) int32 {
	for e := q.l.Back(); e != nil; e = e.Prev() {
		if k := e.Value.(int32); !held[k] {
			q.remove(k)
			return k
		}
	}
	return -1
}

// lru evicts the least recently used expert, but none of stay.
type lru struct {
	nothing
	queue
	stay map[int32]bool
}

func newLRU() *lru { return &lru{queue: newQueue()} }

func (p *lru) hit(k int32) {
	if p.has(k) {
		p.touch(k)
	}
}
func (p *lru) insert(k int32) {
	if !p.stay[k] {
		p.push(k)
	}
}
func (p *lru) evict(_ int32, held []bool) int32 { return p.pop(held) }

// chance evicts any expert.
type chance struct {
	nothing
	keys []int32
	rand *rand.Rand
}

func (p *chance) insert(k int32) { p.keys = append(p.keys, k) }
func (p *chance) evict(_ int32, held []bool) int32 {
	for {
		i := p.rand.IntN(len(p.keys))
		if k := p.keys[i]; !held[k] {
			p.keys[i] = p.keys[len(p.keys)-1]
			p.keys = p.keys[:len(p.keys)-1]
			return k
		}
	}
}

// lru2 evicts the expert whose last use but one is longest ago.
type lru2 struct {
	nothing
	clock int
	last  [][2]int // [keys]: last use and the one before
	in    []int32
}

func newLRU2(keys int) *lru2 { return &lru2{last: make([][2]int, keys)} }

func (p *lru2) visit(v *visit) {
	p.clock++
	for _, u := range v.uses {
		p.last[u.key] = [2]int{p.clock, p.last[u.key][0]}
	}
}
func (p *lru2) insert(k int32) { p.in = append(p.in, k) }
func (p *lru2) evict(_ int32, held []bool) int32 {
	best := -1
	for i, k := range p.in {
		if held[k] {
			continue
		}
		if best < 0 {
			best = i
			continue
		}
		a, b := p.last[k], p.last[p.in[best]]
		if a[1] < b[1] || a[1] == b[1] && a[0] < b[0] {
			best = i
		}
	}
	k := p.in[best]
	p.in[best] = p.in[len(p.in)-1]
	p.in = p.in[:len(p.in)-1]
	return k
}

// sieve keeps a queue in order of arrival and a hand that spares what was used since it last
// passed.
type sieve struct {
	nothing
	queue
	used map[int32]bool
	hand int32 // the key at which it continues; -1 for the oldest
}

func newSieve() *sieve { return &sieve{queue: newQueue(), used: map[int32]bool{}, hand: -1} }

func (p *sieve) hit(k int32)    { p.used[k] = true }
func (p *sieve) insert(k int32) { p.push(k) }
func (p *sieve) evict(_ int32, held []bool) int32 {
	e := p.at[p.hand]
	for {
		if e == nil {
			e = p.l.Back()
		}
		k := e.Value.(int32)
		before := e.Prev()
		if !p.used[k] && !held[k] {
			p.hand = -1
			if before != nil {
				p.hand = before.Value.(int32)
			}
			p.remove(k)
			return k
		}
		p.used[k] = false
		e = before
	}
}

// s3fifo has a small queue for new experts and a main one, and remembers what left the small one
// unused.
type s3fifo struct {
	nothing
	small, main, ghost queue
	freq               map[int32]int
	slots              int
}

func newS3FIFO(slots int) *s3fifo {
	return &s3fifo{small: newQueue(), main: newQueue(), ghost: newQueue(), freq: map[int32]int{}, slots: slots}
}

func (p *s3fifo) hit(k int32) { p.freq[k] = min(3, p.freq[k]+1) }
func (p *s3fifo) insert(k int32) {
	p.freq[k] = 0
	if p.ghost.has(k) {
		p.ghost.remove(k)
		p.main.push(k)
		return
	}
	p.small.push(k)
}
func (p *s3fifo) evict(_ int32, held []bool) int32 {
	for small := p.small.len() > p.slots/10; ; small = !small {
		if small {
			for k := p.small.pop(held); k >= 0; k = p.small.pop(held) {
				if p.freq[k] == 0 {
					p.ghost.push(k)
					p.ghost.trim(p.slots)
					return k
				}
				p.main.push(k)
			}
			continue
		}
		for k := p.main.pop(held); k >= 0; k = p.main.pop(held) {
			if p.freq[k] == 0 {
				return k
			}
			p.freq[k]--
			p.main.push(k)
		}
	}
}

// arc balances a list of experts used once and a list of experts used again by the misses of each.
type arc struct {
	nothing
	once, again, onceGone, againGone queue
	target, slots                    int // of once
	promote                          bool
}

func newARC(slots int) *arc {
	return &arc{once: newQueue(), again: newQueue(), onceGone: newQueue(), againGone: newQueue(), slots: slots}
}

func (p *arc) hit(k int32) {
	if p.once.has(k) {
		p.once.remove(k)
		p.again.push(k)
		return
	}
	p.again.touch(k)
}
func (p *arc) insert(k int32) {
	if p.promote {
		p.promote = false
		p.again.push(k)
		return
	}
	p.once.push(k)
}
func (p *arc) evict(wanted int32, held []bool) int32 {
	switch {
	case p.onceGone.has(wanted):
		p.target = min(p.slots, p.target+max(1, p.againGone.len()/max(1, p.onceGone.len())))
		p.onceGone.remove(wanted)
		p.promote = true
	case p.againGone.has(wanted):
		p.target = max(0, p.target-max(1, p.onceGone.len()/max(1, p.againGone.len())))
		p.againGone.remove(wanted)
		p.promote = true
	}
	from, gone := p.again, p.againGone
	other, otherGone := p.once, p.onceGone
	if p.once.len() > p.target {
		from, gone, other, otherGone = other, otherGone, from, gone
	}
	k := from.pop(held)
	if k < 0 {
		k, gone = other.pop(held), otherGone
	}
	gone.push(k)
	p.onceGone.trim(p.slots)
	p.againGone.trim(p.slots)
	return k
}

// order is the policy of the package. Steps of one row are urgent.
type order struct {
	*policy.Order
	alike bool // all steps are on one side, as if nothing were beside anything
	side  policy.Side
}

// newOrder returns the policy with one half-life; 0 means its defaults.
func newOrder(t *trace, halfLife float64) *order {
	o, err := policy.New(policy.Config{Layers: t.layers, Experts: t.experts, Short: halfLife, Long: halfLife, Popular: halfLife})
	if err != nil {
		panic(err)
	}
	return &order{Order: o}
}

func (p *order) visit(v *visit) {
	p.side = policy.Ordinary
	if v.rows == 1 || p.alike {
		p.side = policy.Urgent
	}
	p.Visit(p.side, v.layer, v.rows)
	for _, u := range v.uses {
		p.Use(int(u.key), int(u.rows))
	}
}
func (p *order) hold(wave, later []use) {
	for _, u := range wave {
		p.Hold(p.side, int(u.key))
	}
	for _, u := range later {
		p.Expect(p.side, int(u.key), 1)
	}
}
func (*order) hit(int32)    {}
func (*order) insert(int32) {} // release lets it leave
func (p *order) evict(int32, []bool) int32 {
	k, ok := p.Evict()
	if !ok {
		return -1
	}
	return int32(k)
}
func (p *order) release(wave []use) {
	for _, u := range wave {
		p.Add(int(u.key))
	}
}

// layerLRU gives every layer the same number of slots, each with an LRU of its own.
type layerLRU struct {
	nothing
	layers         []*lru
	experts, slots int
}

func newLayerLRU(t *trace, slots int) *layerLRU {
	p := &layerLRU{experts: t.experts, slots: slots}
	for range t.layers {
		p.layers = append(p.layers, newLRU())
	}
	return p
}

func (p *layerLRU) of(k int32) *lru { return p.layers[int(k)/p.experts] }
func (p *layerLRU) hit(k int32)     { p.of(k).hit(k) }
func (p *layerLRU) insert(k int32)  { p.of(k).insert(k) }

// evict takes an expert of the same layer if that layer has its share, else of the layer with the
// most.
func (p *layerLRU) evict(wanted int32, held []bool) int32 {
	from := p.of(wanted)
	if from.len() < max(1, p.slots/len(p.layers)) {
		for _, l := range p.layers {
			if l.len() > from.len() {
				from = l
			}
		}
	}
	if k := from.pop(held); k >= 0 {
		return k
	}
	for _, l := range p.layers {
		if k := l.pop(held); k >= 0 {
			return k
		}
	}
	return -1
}
