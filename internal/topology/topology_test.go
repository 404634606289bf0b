package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// tree is a machine as the kernel describes it.
type tree struct{ fstest.MapFS }

func newTree() tree { return tree{fstest.MapFS{}} }

func (t tree) node(node int, list string) tree {
	t.MapFS[fmt.Sprintf("node/node%d/cpulist", node)] = &fstest.MapFile{Data: []byte(list + "\n")}
	return t
}

// core adds a core's threads.
func (t tree) core(list string, ids ...int) tree {
	for _, id := range ids {
		t.MapFS[fmt.Sprintf("cpu/cpu%d/topology/thread_siblings_list", id)] = &fstest.MapFile{Data: []byte(list + "\n")}
	}
	return t
}

// twoSockets has two nodes of two cores with two threads each, numbered as Linux does: first one
// thread of each core.
func twoSockets() tree {
	return newTree().node(0, "0-1,4-5").node(1, "2-3,6-7").
		core("0,4", 0, 4).core("1,5", 1, 5).core("2,6", 2, 6).core("3,7", 3, 7)
}

func upTo(n int) (ids []int) {
	for i := range n {
		ids = append(ids, i)
	}
	return ids
}

func TestPlaces(t *testing.T) {
	uneven := newTree().node(0, "0,1").node(1, "2-5").node(2, "").core("0-1", 0, 1)
	for _, tc := range []struct {
		name    string
		tree    tree
		allowed []int
		n       int
		nodes   []int
		want    []int
	}{
		{"a core for each", twoSockets(), upTo(8), 4, []int{0, 1}, []int{0, 1, 2, 3}},
		{"half of the cores", twoSockets(), upTo(8), 2, []int{0, 1}, []int{0, 2}},
		{"three", twoSockets(), upTo(8), 3, []int{0, 1}, []int{0, 1, 2}},
		{"second threads", twoSockets(), upTo(8), 6, []int{0, 1}, []int{0, 1, 4, 2, 3, 6}},
		{"all", twoSockets(), upTo(8), 8, []int{0, 1}, []int{0, 1, 4, 5, 2, 3, 6, 7}},
		{"more than there are", twoSockets(), upTo(8), 9, []int{0, 1}, []int{0, 1, 4, 5, 0, 2, 3, 6, 7}},
		{"a container with one node's", twoSockets(), []int{2, 3, 6, 7}, 3, []int{1}, []int{2, 3, 6}},
		{"a container with second threads", twoSockets(), []int{4, 5, 6, 7}, 4, []int{0, 1}, []int{4, 5, 6, 7}},
		{"nodes of other sizes", uneven, upTo(6), 5, []int{0, 1}, []int{0, 2, 3, 4, 5}},
		{"nothing is described", newTree(), []int{1, 3}, 3, []int{0}, []int{1, 3, 1}},
		{"one processor", newTree().node(0, "0"), []int{0}, 2, []int{0}, []int{0, 0}},
		{"none", newTree(), nil, 2, nil, nil},
	} {
		m, err := Read(tc.tree, tc.allowed)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if got := m.Nodes(); !slices.Equal(got, tc.nodes) {
			t.Errorf("%s: nodes %v, want %v", tc.name, got, tc.nodes)
		}
		if got := m.Places(tc.n); !slices.Equal(got, tc.want) {
			t.Errorf("%s: places %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestPlacesSpread places threads on machines of all kinds: no core has two threads before every
// core has one, no processor before every processor has, and nodes that have room differ by one.
func TestPlacesSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var m Machine
		id := 0
		for node := range 1 + rng.IntN(4) {
			for range 1 + rng.IntN(6) {
				core := id
				for range 1 + rng.IntN(2) {
					m = append(m, Processor{ID: id, Core: core, Node: node})
					id++
				}
			}
		}
		n := 1 + rng.IntN(2*len(m))
		places := m.Places(n)
		if len(places) != n {
			t.Fatalf("%v: %d places, want %d", m, len(places), n)
		}
		byID, byCore, byNode, cores, nodeCores := map[int]int{}, map[int]int{}, map[int]int{}, map[int]bool{}, map[int]map[int]bool{}
		last := 0
		for _, id := range places {
			p := m[id]
			byID[id]++
			byCore[p.Core]++
			byNode[p.Node]++
			if p.Node < last {
				t.Fatalf("%v: places %v leave a node and come back", m, places)
			}
			last = p.Node
		}
		for _, p := range m {
			cores[p.Core] = true
			if nodeCores[p.Node] == nil {
				nodeCores[p.Node] = map[int]bool{}
			}
			nodeCores[p.Node][p.Core] = true
		}
		for _, p := range m {
			if want := n / len(m); byID[p.ID] < want || byID[p.ID] > want+1 {
				t.Fatalf("%v: processor %d has %d of %d threads", m, p.ID, byID[p.ID], n)
			}
			if n <= len(cores) && byCore[p.Core] > 1 || n >= len(cores) && byCore[p.Core] == 0 {
				t.Fatalf("%v: core %d has %d of %d threads", m, p.Core, byCore[p.Core], n)
			}
		}
		for a, cores := range nodeCores {
			for b := range nodeCores {
				if n <= len(m) && byNode[a] < len(cores) && byNode[b] > byNode[a]+1 {
					t.Fatalf("%v: node %d has %d threads and room, node %d has %d", m, a, byNode[a], b, byNode[b])
				}
			}
		}
	}
}

func TestReadErrors(t *testing.T) {
	for _, text := range []string{"x", "1-", "-1", "3-2", "0,,1", "0-99999999999"} {
		if _, err := Read(newTree().node(0, text), []int{0}); err == nil || !strings.Contains(err.Error(), "node 0") {
			t.Errorf("processors %q: %v", text, err)
		}
		if _, err := Read(newTree().core(text, 0), []int{0}); err == nil || !strings.Contains(err.Error(), "processor 0") {
			t.Errorf("siblings %q: %v", text, err)
		}
	}
}
