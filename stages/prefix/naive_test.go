package prefix_test

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages/prefix"
)

// naive is a tree beside a list of its texts, which is searched from end to end.
type naive struct {
	testing.TB
	tree  prefix.Tree[int]
	texts map[*prefix.Holder[int]][]int32
	last  int
}

func newNaive(t testing.TB) *naive {
	return &naive{TB: t, texts: make(map[*prefix.Holder[int]][]int32)}
}

func (n *naive) insert(text []int32) {
	n.last++
	n.texts[n.tree.Insert(slices.Clone(text), n.last)] = slices.Clone(text)
}

// list returns the holders in the order in which they came.
func (n *naive) list() []*prefix.Holder[int] {
	return slices.SortedFunc(maps.Keys(n.texts), func(a, b *prefix.Holder[int]) int { return cmp.Compare(a.Value, b.Value) })
}

// common is prefix.Common in other words.
func common(a, b []int32) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// check compares all that can be asked with the list.
func (n *naive) check(what string, text []int32) {
	n.Helper()
	if err := n.tree.Check(); err != nil {
		n.Fatalf("%s: %v", what, err)
	}
	if n.tree.Len() != len(n.texts) {
		n.Fatalf("%s: there are %d holders, want %d", what, n.tree.Len(), len(n.texts))
	}
	parts, whole := make(map[*prefix.Holder[int]]int), make(map[*prefix.Holder[int]]int)
	for h, held := range n.texts {
		if !slices.Equal(h.Text(), held) {
			n.Fatalf("%s: a holder has %v, want %v", what, h.Text(), held)
		}
		if c := common(held, text); c > 0 {
			parts[h] = c
			if c == len(held) {
				whole[h] = c
			}
		}
		for other, longer := range n.texts {
			if got, want := h.Begins(other), common(held, longer) == len(held); got != want {
				n.Fatalf("%s: %v begins %v: %v, want %v", what, held, longer, got, want)
			}
		}
	}
	n.same(what+": sharing", text, n.tree.Sharing(text), parts)
	n.same(what+": beginnings", text, n.tree.Beginnings(text), whole)
}

// same compares what was found with what there is, and looks at the order.
func (n *naive) same(what string, text []int32, found iter.Seq2[*prefix.Holder[int], int], want map[*prefix.Holder[int]]int) {
	n.Helper()
	got, last := make(map[*prefix.Holder[int]]int), len(text)
	for h, c := range found {
		if _, twice := got[h]; twice || c > last {
			n.Fatalf("%s of %v: %v twice, or %d after %d", what, text, h.Text(), c, last)
		}
		got[h], last = c, c
	}
	if !maps.Equal(got, want) {
		n.Fatalf("%s of %v: %d are found, want %d: %v", what, text, len(got), len(want), want)
	}
	for stop := range len(want) { // a caller may have enough at any time
		seen := 0
		for range found {
			if seen++; seen > stop {
				break
			}
		}
	}
}

// do does one of the things that a tree can do. choose returns a number below its argument.
func (n *naive) do(choose func(int) int) {
	n.Helper()
	text := func(start []int32, most int) []int32 {
		t := slices.Clone(start)
		for range choose(most + 1) {
			t = append(t, int32(choose(3))-1)
		}
		return t
	}
	some := func(t []int32) []int32 { return t[:choose(len(t)+1)] }
	list := n.list()
	what, probe := "insert", []int32(nil)
	if len(list) == 0 {
		probe = text(nil, 8)
		n.insert(probe)
		n.check(what, probe)
		return
	}
	h, other := list[choose(len(list))], list[choose(len(list))]
	was := n.texts[h]
	switch choose(9) {
	case 0:
		n.insert(text(nil, 8))
	case 1, 2:
		n.insert(text(some(n.texts[other]), 4))
	case 3:
		what = "extend by one"
		next := append(slices.Clone(was), int32(choose(3))-1)
		n.tree.Extend(h, slices.Clone(next))
		n.texts[h] = next
	case 4:
		what = "extend"
		next := text(was, 5)
		n.tree.Extend(h, slices.Clone(next))
		n.texts[h] = next
	case 5:
		what = "cut"
		next := some(was)
		n.tree.Cut(h, len(next))
		n.texts[h] = next
	case 6:
		what = "set"
		next := text(some(n.texts[other]), 4)
		n.tree.Set(h, slices.Clone(next))
		n.texts[h] = next
	default:
		what = "remove"
		n.tree.Remove(h)
		delete(n.texts, h)
	}
	n.check(what, text(some(n.texts[other]), 3))
}
