package cachesim

import (
	"container/heap"
	"fmt"
	"math"
)

// Visit lists the experts that one layer uses together, each once, by numbers that are unique among
// all layers. They must be in the cache at the same time.
type Visit []int32

// Misses holds, for each visit, how many of its experts the cache had to read.
type Misses []int

// Sum returns all misses from visit from on.
func (m Misses) Sum(from int) int {
	n := 0
	for _, v := range m[min(from, len(m)):] {
		n += v
	}
	return n
}

// Optimum returns the misses of the cache that evicts the expert whose next use is farthest away.
// No cache with as many slots that reads only what is used has fewer. It begins empty. The error
// says which visit cannot be served.
func Optimum(visits []Visit, slots int) (Misses, error) {
	next, err := nextUses(visits, slots)
	if err != nil {
		return nil, err
	}
	return replay(visits, slots, func(visit, use int) int { return -next[visit][use] }), nil
}

// LRU returns the misses of the cache that evicts the least recently used expert. It begins empty.
func LRU(visits []Visit, slots int) (Misses, error) {
	if _, err := nextUses(visits, slots); err != nil {
		return nil, err
	}
	return replay(visits, slots, func(visit, _ int) int { return visit }), nil
}

// nextUses returns, for each use, the visit that uses the same expert next; math.MaxInt if none
// does.
func nextUses(visits []Visit, slots int) ([][]int, error) {
	next, last := make([][]int, len(visits)), map[int32]int{}
	for i := len(visits) - 1; i >= 0; i-- {
		if len(visits[i]) > slots {
			return nil, fmt.Errorf("cachesim: visit %d uses %d experts together, but there are %d slots", i, len(visits[i]), slots)
		}
		next[i] = make([]int, len(visits[i]))
		for j, k := range visits[i] {
			at, again := last[k]
			switch {
			case again && at == i:
				return nil, fmt.Errorf("cachesim: visit %d names expert %d twice", i, k)
			case again:
				next[i][j] = at
			default:
				next[i][j] = math.MaxInt
			}
			last[k] = i
		}
	}
	return next, nil
}

// replay serves the visits and evicts the expert of the least worth that the visit does not use. An
// expert's worth is what worth returned for its last use.
func replay(visits []Visit, slots int, worth func(visit, use int) int) Misses {
	out := make(Misses, len(visits))
	held := map[int32]int{} // the cache, with the worth of each expert
	// everything in held; entries with an outdated worth are ignored
	var queue entries
	for i, v := range visits {
		now := make(map[int32]bool, len(v))
		for _, k := range v {
			now[k] = true
		}
		for _, k := range v {
			if _, ok := held[k]; ok {
				continue
			}
			out[i]++
			if len(held) == slots {
				var back []entry
				for {
					e := heap.Pop(&queue).(entry)
					w, ok := held[e.key]
					if !ok || w != e.worth {
						continue
					}
					if now[e.key] {
						back = append(back, e)
						continue
					}
					delete(held, e.key)
					break
				}
				for _, e := range back {
					heap.Push(&queue, e)
				}
			}
			held[k] = math.MaxInt // until all of the visit are there
		}
		for j, k := range v {
			held[k] = worth(i, j)
			heap.Push(&queue, entry{k, held[k]})
		}
	}
	return out
}

// entry is an expert and its worth.
type entry struct {
	key   int32
	worth int
}

// entries is a heap, the least worth first; among equals the smaller number.
type entries []entry

func (e entries) Len() int { return len(e) }
func (e entries) Less(i, j int) bool {
	return e[i].worth < e[j].worth || e[i].worth == e[j].worth && e[i].key < e[j].key
}
func (e entries) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entries) Push(x any)   { *e = append(*e, x.(entry)) }
func (e *entries) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
