package placement

import "math"

// slack is how much more than its part an owner may have to do and still keep what it owns.
const slack = 1.05

// layer deals out the experts of one layer.
func (k *maker) layer(layer, room int) {
	k.weigh(layer)
	k.setQuotas(layer, room)
	clear(k.loads)
	first := layer * k.Experts
	for _, e := range k.order { // the most used first: what is hardly used makes room for it
		i := k.kept(first+int(e), k.chances[e])
		if i < 0 {
			i = k.leastLoaded(k.chances[e])
		}
		k.give(first+int(e), i, k.chances[e])
	}
}

// setQuotas says how many experts of a layer each owner may have: of all its memory an equal part
// in each layer or, if not all experts fit, as many as its part of all memory.
func (k *maker) setQuotas(layer, room int) {
	at, layers := layer-k.First, k.Layers-k.First
	for i, o := range k.owners {
		all := o.Room
		if !k.enough {
			all = int(math.Ceil(float64(o.Room) * float64(layers*k.Experts) / float64(room)))
		}
		k.quotas[i] = (at+1)*all/layers - at*all/layers
		if k.enough {
			k.quotas[i] = min(k.quotas[i], o.Room-k.owned[i])
		}
	}
}

// kept returns who keeps an expert that was its own before; -1 if somebody else shall have it.
func (k *maker) kept(key int, chance float64) int {
	if k.before == nil {
		return -1
	}
	i := int(k.before.Owners[key]) + 1
	if i >= len(k.owners) || k.quotas[i] <= 0 {
		return -1
	}
	if k.loads[i]+chance*k.owners[i].Cost > slack*k.part() {
		return -1
	}
	return i
}

// part is what each owner has to do if all finish at once, which memory may not allow.
func (k *maker) part() float64 {
	speed := 0.0
	for i := range k.owners {
		if k.owners[i].Room > 0 {
			speed += 1 / k.owners[i].Cost
		}
	}
	return 1 / speed
}

// leastLoaded returns the owner that has done first if it gets an expert, among those with room in
// the layer; if there are none, among those with memory.
func (k *maker) leastLoaded(chance float64) int {
	for _, within := range []bool{true, false} {
		best, least := -1, math.Inf(1)
		for i, o := range k.owners {
			if within && k.quotas[i] <= 0 || !within && k.owned[i] >= o.Room && k.enough || o.Room == 0 {
				continue
			}
			if l := k.loads[i] + chance*o.Cost; l < least {
				best, least = i, l
			}
		}
		if best >= 0 {
			return best
		}
	}
	return 0
}

// give makes an owner that of an expert.
func (k *maker) give(key, i int, chance float64) {
	k.table.Owners[key] = int8(i - 1)
	k.owned[i]++
	k.quotas[i]--
	k.loads[i] += chance * k.owners[i].Cost
}
