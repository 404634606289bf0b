package tier_test

import "github.com/moeflux/moeflux-actor/stages/tier"

// shrink lets the blocks of the highest numbers leave until the others keep to the limit.
func (n *naive) shrink() {
	for {
		staying, last := 0, int32(0)
		for id := range n.records {
			if !n.leaving[id.Block] {
				staying++
				last = max(last, id.Block)
			}
		}
		if staying <= n.limit || last == 0 {
			return
		}
		n.leaving[last] = true
		for id, r := range n.records {
			if id.Block == last && len(r.users) == 0 {
				*r = naiveRecord{}
			}
		}
	}
}

// memory says what is ordered, after all else is done.
func (n *naive) memory() {
	if n.order.Kind != tier.NoOrder {
		return
	}
	size, used, empty := map[int32]int{}, map[int32]bool{}, 0
	for id, r := range n.records {
		size[id.Block]++
		used[id.Block] = used[id.Block] || len(r.users) > 0
		if !r.has && !n.leaving[id.Block] {
			empty++
		}
	}
	next := int32(0)
	for size[next] > 0 {
		if n.leaving[next] && !used[next] {
			n.order = tier.Order{Kind: tier.Free, Block: next, Records: size[next]}
			n.want.Memory = n.order
			return
		}
		next++
	}
	for block := range size { // beyond a gap in the numbers
		if n.leaving[block] && !used[block] && (n.order.Kind == tier.NoOrder || block < n.order.Block) {
			n.order = tier.Order{Kind: tier.Free, Block: block, Records: size[block]}
		}
	}
	if more := n.limit - n.held(); n.order.Kind == tier.NoOrder && empty <= n.per/2 && more > 0 {
		n.order = tier.Order{Kind: tier.Pin, Block: next, Records: min(n.per, more)}
	}
	n.want.Memory = n.order
}
