package prefix_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/stages/prefix"
)

// TestTree does random things to a tree and to a list of its texts, which have much in common.
func TestTree(t *testing.T) {
	seeds := uint64(400)
	if testing.Short() {
		seeds = 60
	}
	most := 0
	for seed := range seeds {
		n, rng := newNaive(t), rand.New(rand.NewPCG(seed, 1))
		for range 200 {
			n.do(rng.IntN)
			most = max(most, len(n.texts))
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		for _, h := range n.list() {
			n.tree.Remove(h)
			delete(n.texts, h)
			n.check("remove", nil)
		}
	}
	if most < 15 {
		t.Errorf("at most %d texts at once: the test does not reach what it is for", most)
	}
}

func FuzzTree(f *testing.F) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 2))
		b := make([]byte, 300)
		for i := range b {
			b[i] = byte(rng.IntN(256))
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n := newNaive(t)
		for len(b) > 0 {
			n.do(func(below int) int {
				if len(b) == 0 {
					return 0
				}
				v := int(b[0]) % below
				b = b[1:]
				return v
			})
		}
	})
}

// TestSearch has a case for each kind of place in which a search may end.
func TestSearch(t *testing.T) {
	for _, c := range []struct {
		name    string
		texts   [][]int32
		text    []int32
		parts   map[int]int // place in texts: how many in common
		wholes  map[int]int
		deepest int // of parts
	}{
		{"nothing there", nil, []int32{1}, nil, nil, 0},
		{"empty texts", [][]int32{{}, {}}, []int32{1}, nil, nil, 0},
		{"no text", [][]int32{{1}}, nil, nil, nil, 0},
		{"within a node", [][]int32{{1, 2, 3}, {1, 2, 3}}, []int32{1, 2, 4}, map[int]int{0: 2, 1: 2}, nil, 2},
		{"at the end of a leaf", [][]int32{{1, 2}}, []int32{1, 2, 3}, map[int]int{0: 2}, map[int]int{0: 2}, 2},
		{"at a branch", [][]int32{{1, 2, 3}, {1, 2, 4}, {1}}, []int32{1, 2, 5}, map[int]int{0: 2, 1: 2, 2: 1}, map[int]int{2: 1}, 2},
		{"in a chain", [][]int32{{1}, {1, 2}, {1, 2, 3}}, []int32{1, 2}, map[int]int{0: 1, 1: 2, 2: 2}, map[int]int{0: 1, 1: 2}, 2},
		{"unknown tokens", [][]int32{{-1, 2}, {-2, 2}}, []int32{-2, 3}, map[int]int{1: 1}, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tree prefix.Tree[int]
			for i, text := range c.texts {
				tree.Insert(text, i)
			}
			parts, wholes, deepest := map[int]int{}, map[int]int{}, 0
			for h, n := range tree.Sharing(c.text) {
				parts[h.Value], deepest = n, max(deepest, n)
			}
			for h, n := range tree.Beginnings(c.text) {
				wholes[h.Value] = n
			}
			if fmt.Sprint(parts) != fmt.Sprint(c.parts) || fmt.Sprint(wholes) != fmt.Sprint(c.wholes) || deepest != c.deepest {
				t.Errorf("%v: in common %v, as a whole %v, want %v and %v", c.text, parts, wholes, c.parts, c.wholes)
			}
		})
	}
}

// TestNoAllocations has texts grow as they do while sequences decode: alone, and side by side, in
// which case each token divides them and brings them together again.
func TestNoAllocations(t *testing.T) {
	for _, sequences := range []int{1, 4} {
		t.Run(fmt.Sprintf("sequences=%d", sequences), func(t *testing.T) {
			var tree prefix.Tree[int]
			const tokens = 2000
			text := make([]int32, tokens)
			tree.Insert(text[:100], -1) // what is remembered of the prompt
			var list []*prefix.Holder[int]
			for i := range sequences {
				list = append(list, tree.Insert(text[:100], i))
			}
			n := 100
			step := func() {
				n++
				for _, h := range list {
					tree.Extend(h, text[:n])
				}
			}
			step()
			if got := testing.AllocsPerRun(tokens-200, step); got != 0 {
				t.Errorf("%v allocations a token, want none", got)
			}
			if err := tree.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMemory removes the text that the tree had first. What it shared with another one, which
// stays, must not keep its tokens in memory.
func TestMemory(t *testing.T) {
	var tree prefix.Tree[int]
	const tokens = 1 << 20
	freed := make(chan struct{})
	first := make([]int32, tokens)
	runtime.AddCleanup(&first[0], func(c chan struct{}) { close(c) }, freed)
	second := slices.Clone(first[:1000])
	second[900] = 1
	h := tree.Insert(first, 1)
	stays := tree.Insert(second, 2)
	cut := tree.Insert(slices.Clone(first[:500]), 3)
	first = nil
	tree.Remove(h)
	for range 10 {
		runtime.GC()
		select {
		case <-freed:
			runtime.KeepAlive(&tree)
			for _, h := range []*prefix.Holder[int]{h, stays, cut} {
				runtime.KeepAlive(h)
			}
			return
		case <-time.After(time.Second): // for whoever runs cleanups
		}
	}
	t.Error("a text that nobody holds is still in memory")
}
