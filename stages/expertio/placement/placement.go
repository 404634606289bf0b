// Package placement decides which machine owns which expert of a model, and who has a second copy.
// It is arithmetic: no clock, no state.
//
//	placement.go  Make: a table for given machines and uses
//	layer.go      the owners of one layer
//
// Each layer waits for its slowest owner. So the experts of a layer are dealt out by what they
// cost, the most used first and each to the owner with the least to do, within the memory of each.
// An expert stays where it was unless its owner has gone or has too much to do: moving one costs
// its new owner a read.
package placement

import (
	"cmp"
	"math"
	"slices"
)

const (
	// Here is this machine, among owners; hosts count from 0.
	Here = -1
	// Nobody owns a copy.
	Nobody = -2
)

// Owner is a machine that computes experts.
type Owner struct {
	Room int     // experts that it has memory for; 0: it owns nothing
	Cost float64 // of computing an expert for a row, in any unit; 0: the mean of the others
}

// Model is whose experts are placed: keys are layer·Experts+expert.
type Model struct {
	Layers, Experts int
	First           int // the first layer with experts; all layers after it have them
	// Chance is the chance, 0 to 1, that a row uses an expert; nil if nothing is known.
	Chance func(key int) float64
}

// Table says who owns what. It does not change: another placement is another table, of a later
// epoch.
type Table struct {
	Epoch  uint32
	Owners []int8 // [Layers·Experts], Here or a host
	Copies []int8 // [Layers·Experts], a host or Nobody
}

// maker is a table in the making. Owners are counted from this machine on: host h is h+1.
type maker struct {
	Model
	owners []Owner
	before *Table // nil: none
	table  *Table
	enough bool  // all experts fit in memory
	owned  []int // of each owner, in all layers

	chances, loads []float64 // [Experts] and [owners] of a layer
	quotas         []int     // [owners] of a layer
	order          []int32   // the experts of a layer, the most used first
}

// Make returns a table of the epoch after that of before, which may be nil. owners are this machine
// and the hosts, in order.
func Make(m Model, owners []Owner, before *Table) *Table {
	n := m.Layers * m.Experts
	k := &maker{
		Model: m, owners: withCosts(owners), before: before, table: &Table{Epoch: 1, Owners: make([]int8, n), Copies: make([]int8, n)}, owned: make([]int, len(owners)),
		chances: make([]float64, m.Experts), loads: make([]float64, len(owners)), quotas: make([]int, len(owners)), order: make([]int32, m.Experts),
	}
	if before != nil {
		k.table.Epoch = before.Epoch + 1
	}
	room := 0
	for _, o := range owners {
		room += o.Room
	}
	k.enough = room >= (m.Layers-m.First)*m.Experts
	for i := range n {
		k.table.Owners[i], k.table.Copies[i] = Here, Nobody
	}
	if room == 0 {
		return k.table
	}
	for layer := m.First; layer < m.Layers; layer++ {
		k.layer(layer, room)
	}
	if k.enough {
		k.copies()
	}
	return k.table
}

// withCosts gives owners whose cost is not known the mean of the others.
func withCosts(owners []Owner) []Owner {
	owners = slices.Clone(owners)
	sum, n := 0.0, 0
	for _, o := range owners {
		if o.Cost > 0 {
			sum, n = sum+o.Cost, n+1
		}
	}
	for i := range owners {
		if owners[i].Cost <= 0 {
			owners[i].Cost = 1
			if n > 0 {
				owners[i].Cost = sum / float64(n)
			}
		}
	}
	return owners
}

// evenShare is the part of each expert's weight that is the same for all: what is known of uses is
// not all that will be, and of nothing known all weigh the same.
const evenShare = 0.1

// weigh sets the chances of a layer, and its order.
func (k *maker) weigh(layer int) {
	sum := 0.0
	for e := range k.chances {
		k.chances[e], k.order[e] = 0, int32(e)
		if k.Chance != nil {
			k.chances[e] = k.Chance(layer*k.Experts + e)
			sum += k.chances[e]
		}
	}
	for e := range k.chances {
		if sum > 0 {
			k.chances[e] = (1-evenShare)*k.chances[e]/sum + evenShare/float64(k.Experts)
		} else {
			k.chances[e] = 1 / float64(k.Experts)
		}
	}
	slices.SortStableFunc(k.order, func(a, b int32) int { return cmp.Compare(k.chances[b], k.chances[a]) })
}

// copies gives what memory hosts have left to second copies of the experts that are used most.
func (k *maker) copies() {
	left := 0
	for i := 1; i < len(k.owners); i++ {
		left += max(0, k.owners[i].Room-k.owned[i])
	}
	if left == 0 {
		return
	}
	type hot struct {
		key    int
		chance float64
	}
	var all []hot
	for layer := k.First; layer < k.Layers; layer++ {
		k.weigh(layer)
		for e, p := range k.chances {
			all = append(all, hot{layer*k.Experts + e, p})
		}
	}
	slices.SortStableFunc(all, func(a, b hot) int { return cmp.Compare(b.chance, a.chance) })
	loads := k.allLoads()
	for _, x := range all {
		layer, best, least := x.key/k.Experts, 0, math.Inf(1)
		own := int(k.table.Owners[x.key]) + 1
		if own == 0 { // it costs no round trip
			continue
		}
		for i := 1; i < len(k.owners); i++ {
			if l := loads[layer][i]; i != own && k.owned[i] < k.owners[i].Room && l < least {
				best, least = i, l
			}
		}
		if best == 0 {
			continue
		}
		k.table.Copies[x.key] = int8(best - 1)
		k.owned[best]++
		half := x.chance / 2 // each of the two gets half of the uses
		loads[layer][own] -= half * k.owners[own].Cost
		loads[layer][best] += half * k.owners[best].Cost
	}
}

// allLoads returns what each owner has to do in each layer.
func (k *maker) allLoads() [][]float64 {
	loads := make([][]float64, k.Layers)
	for layer := k.First; layer < k.Layers; layer++ {
		k.weigh(layer)
		loads[layer] = make([]float64, len(k.owners))
		for e, p := range k.chances {
			i := int(k.table.Owners[layer*k.Experts+e]) + 1
			loads[layer][i] += p * k.owners[i].Cost
		}
	}
	return loads
}

// Cost is what a row's experts cost with a table, in the unit of the owners' costs: of each layer
// what its slowest owner has to do, on the average.
func Cost(m Model, owners []Owner, t *Table) (sum float64) {
	k := &maker{Model: m, owners: withCosts(owners), table: t, chances: make([]float64, m.Experts), order: make([]int32, m.Experts)}
	for layer, loads := range k.allLoads() {
		if layer >= m.First {
			sum += slices.Max(loads)
		}
	}
	return sum
}
