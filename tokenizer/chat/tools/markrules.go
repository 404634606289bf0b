package tools

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// markNode is a place in marks: what has been read of a text ends in the characters that lead
// there, and in no longer beginning of a mark.
type markNode struct {
	next  map[rune]*markNode
	fall  *markNode // where the longest shorter beginning is that the text ends in; nil at the root
	mark  bool      // a mark ends here
	index int       // of its rule
}

// markRules defines the texts that hold none of the marks, or if until, those that end with the
// first of them. Each place in the marks is a rule, which goes over to another by a character: the
// rules need no memory of what was read. They are named name, name-1, and so on.
func markRules(define func(name, is string), name string, until bool, marks ...string) {
	root := &markNode{next: map[rune]*markNode{}}
	nodes := root.plant(marks)
	var all []rune
	for _, m := range marks {
		all = append(all, []rune(m)...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	rule := func(n *markNode) string {
		if n == root {
			return name
		}
		return fmt.Sprintf("%s-%d", name, n.index)
	}
	for _, n := range nodes {
		if n.mark {
			continue
		}
		var ways []string
		var special []rune // lead elsewhere than to the root
		for _, r := range all {
			switch to := n.after(r); {
			case to.mark && until:
				ways, special = append(ways, literal(string(r))), append(special, r)
			case to.mark:
				special = append(special, r)
			case to != root:
				ways, special = append(ways, literal(string(r))+" "+rule(to)), append(special, r)
			}
		}
		ways = append(ways, class(special...)+" "+name)
		is := strings.Join(ways, " | ")
		if !until {
			is = "(" + is + ")?"
		}
		define(rule(n), is)
	}
}

// plant adds marks below the root, and returns all nodes, those of shorter texts first.
func (n *markNode) plant(marks []string) []*markNode {
	for _, m := range marks {
		at := n
		for _, r := range m {
			if at.next[r] == nil {
				at.next[r] = &markNode{next: map[rune]*markNode{}}
			}
			at = at.next[r]
		}
		at.mark = true
	}
	nodes := []*markNode{n}
	for i := 0; i < len(nodes); i++ {
		at := nodes[i]
		at.index = i
		for _, r := range slices.Sorted(maps.Keys(at.next)) {
			to := at.next[r]
			to.fall = n
			if at.fall != nil {
				to.fall = at.fall.after(r)
			}
			to.mark = to.mark || to.fall.mark
			nodes = append(nodes, to)
		}
	}
	return nodes
}

// after returns where one more character leads.
func (n *markNode) after(r rune) *markNode {
	for ; n.next[r] == nil; n = n.fall {
		if n.fall == nil {
			return n
		}
	}
	return n.next[r]
}

// class is all characters but some, in GBNF.
func class(not ...rune) string {
	var b strings.Builder
	b.WriteString("[^")
	for _, r := range not {
		fmt.Fprintf(&b, `\U%08x`, r)
	}
	b.WriteByte(']')
	return b.String()
}
