package whatif

import (
	"container/list"

	"github.com/moeflux/moeflux-actor/stages/expertio"
)

// lru is an order in which the least recently used expert leaves first, whatever is known of what
// comes. It stands in for policy.Order to compare the two.
type lru struct {
	experts int
	all     list.List       // keys that may leave, the least recently used first
	at      []*list.Element // [keys], nil if it may not leave
	used    []int64         // [keys] when it was used last, as a number that grows
	now     int64
}

func newLRU(layers, experts int) *lru {
	return &lru{experts: experts, at: make([]*list.Element, layers*experts), used: make([]int64, layers*experts)}
}

// Visit does nothing: only uses count.
func (o *lru) Visit(expertio.Side, int, int) {}

// Use makes an expert the most recently used one.
func (o *lru) Use(key, _ int) {
	o.now++
	o.used[key] = o.now
	if o.at[key] != nil {
		o.Remove(key)
		o.Add(key)
	}
}

// Expect and Seed do nothing: what may come is not looked at.
func (o *lru) Expect(expertio.Side, int, float64) {}
func (o *lru) Seed(int, float64)                  {}

// Chance returns 0: nothing speaks for an expert.
func (o *lru) Chance(_ int) float64 { return 0 }

// Len returns how many experts may leave.
func (o *lru) Len() int { return o.all.Len() }

// Add puts an expert in its place among those that may leave. One that was read on a guess, and not
// used since, counts as used now.
func (o *lru) Add(key int) {
	if o.at[key] != nil {
		return
	}
	if o.used[key] == 0 {
		o.now++
		o.used[key] = o.now
	}
	e := o.all.Back()
	for e != nil && o.used[e.Value.(int)] > o.used[key] {
		e = e.Prev()
	}
	if e == nil {
		o.at[key] = o.all.PushFront(key)
	} else {
		o.at[key] = o.all.InsertAfter(key, e)
	}
}

// Hold takes an expert that is used from those that may leave.
func (o *lru) Hold(_ expertio.Side, key int) { o.Remove(key) }

// Remove takes an expert from those that may leave.
func (o *lru) Remove(key int) {
	if e := o.at[key]; e != nil {
		o.all.Remove(e)
		o.at[key] = nil
	}
}

// Evict removes the least recently used expert and returns it.
func (o *lru) Evict() (key int, ok bool) {
	if key, ok = o.Next(); ok {
		o.Remove(key)
		o.used[key] = 0
	}
	return key, ok
}

// Next returns the least recently used expert that may leave.
func (o *lru) Next() (key int, ok bool) {
	e := o.all.Front()
	if e == nil {
		return -1, false
	}
	return e.Value.(int), true
}
