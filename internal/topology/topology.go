// Package topology says which processors share a core and a memory node, places threads on them,
// and spreads memory over the nodes.
//
// A node is the memory that some processors reach sooner than the rest (NUMA). Large servers have
// one for each socket or more; most other machines have one.
package topology

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Processor is one that the system schedules threads on: a core, or one of its hardware threads.
type Processor struct {
	ID   int
	Core int // the lowest ID of those on the same core
	Node int // the memory near it
}

// Machine is the processors that a process may use, in ascending order of their IDs.
type Machine []Processor

// Read reads a machine from a tree like Linux's /sys/devices/system. allowed are the processors
// that the process may use, whose description is read. Without a description of nodes all have
// node 0.
func Read(tree fs.FS, allowed []int) (Machine, error) {
	nodes, err := nodesOf(tree)
	if err != nil {
		return nil, err
	}
	var m Machine
	for _, id := range slices.Sorted(slices.Values(allowed)) {
		p := Processor{ID: id, Core: id, Node: nodes[id]}
		text, err := fs.ReadFile(tree, fmt.Sprintf("cpu/cpu%d/topology/thread_siblings_list", id))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("topology: %w", err)
		}
		if err == nil {
			siblings, err := parseList(string(text))
			if err != nil {
				return nil, fmt.Errorf("topology: threads of the core of processor %d: %w", id, err)
			}
			if len(siblings) > 0 {
				p.Core = slices.Min(siblings)
			}
		}
		m = append(m, p)
	}
	return m, nil
}

// nodesOf returns the node of each processor that one names.
func nodesOf(tree fs.FS) (map[int]int, error) {
	lists, err := fs.Glob(tree, "node/node[0-9]*/cpulist")
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	nodes := map[int]int{}
	for _, list := range lists {
		node, err := strconv.Atoi(strings.TrimPrefix(path.Base(path.Dir(list)), "node"))
		if err != nil {
			continue // another file
		}
		text, err := fs.ReadFile(tree, list)
		if err != nil {
			return nil, fmt.Errorf("topology: %w", err)
		}
		ids, err := parseList(string(text))
		if err != nil {
			return nil, fmt.Errorf("topology: processors of node %d: %w", node, err)
		}
		for _, id := range ids {
			nodes[id] = node
		}
	}
	return nodes, nil
}

// maxID bounds what parseList takes, since a list may name a range.
const maxID = 1 << 16

// parseList reads numbers and ranges as the kernel writes them: "0-3,8".
func parseList(text string) ([]int, error) {
	var ids []int
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil // a node with memory alone
	}
	for part := range strings.SplitSeq(text, ",") {
		low, high, ranged := strings.Cut(part, "-")
		first, err := strconv.Atoi(low)
		last := first
		if err == nil && ranged {
			last, err = strconv.Atoi(high)
		}
		if err != nil || first < 0 || last < first || last >= maxID {
			return nil, fmt.Errorf("%q is not a list of processors", text)
		}
		for id := first; id <= last; id++ {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Nodes returns the nodes of the machine's processors, in ascending order.
func (m Machine) Nodes() []int {
	var nodes []int
	for _, p := range m {
		nodes = append(nodes, p.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// Places returns a processor for each of n threads. Threads are spread over the nodes, so that each
// node's memory serves as many, and those with neighbouring numbers share a node, since they work
// on neighbouring memory. A core gets a second thread when every core has one, and a processor when
// every processor has.
func (m Machine) Places(n int) []int {
	if len(m) == 0 {
		return nil
	}
	order := m.order()
	places := make([]place, n)
	for i := range places {
		places[i] = order[i%len(order)]
	}
	slices.SortStableFunc(places, func(a, b place) int { return a.node - b.node })
	ids := make([]int, n)
	for i, p := range places {
		ids[i] = p.id
	}
	return ids
}

// place is where a thread may run.
type place struct {
	id, node int
	rank     int // of the processor among those of its core
	turn     int // of the processor among those of its node and rank
}

// order returns all processors in the order in which threads take them.
func (m Machine) order() []place {
	type level struct{ node, rank int }
	ranks, turns := map[int]int{}, map[level]int{} // ranks by core
	all := make([]place, len(m))
	for i, p := range m {
		at := level{p.Node, ranks[p.Core]}
		all[i] = place{id: p.ID, node: p.Node, rank: at.rank, turn: turns[at]}
		ranks[p.Core]++
		turns[at]++
	}
	slices.SortStableFunc(all, func(a, b place) int {
		return cmp.Or(a.rank-b.rank, a.turn-b.turn, a.node-b.node)
	})
	return all
}
