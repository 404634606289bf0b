package tools

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// markTree is marks by their characters. All begin with the same character, which is nowhere else
// in them: so a mark that breaks off can only be followed by the beginning of another.
type markTree struct {
	next map[rune]*markTree // nil where a mark ends
}

func newMarkTree(marks ...string) *markTree {
	root := &markTree{next: map[rune]*markTree{}}
	for _, m := range marks {
		at, runes := root, []rune(m)
		for i, r := range runes {
			if at.next[r] == nil {
				at.next[r] = &markTree{next: map[rune]*markTree{}}
			}
			at = at.next[r]
			if i == len(runes)-1 {
				at.next = nil
			}
		}
	}
	return root
}

func (t *markTree) runes() []rune { return slices.Sorted(maps.Keys(t.next)) }

// without returns, in GBNF, the texts that hold none of the marks: characters that begin none,
// marks that break off, and at the end perhaps the beginning of one.
func (t *markTree) without() string {
	first := t.runes()[0]
	node := t.next[first]
	begun := literal(string(first)) + " " + node.begun()
	return fmt.Sprintf("(%s | (%s)* %s (%s))* (%s)*", class(first), begun, literal(string(first)), node.broken(first), begun)
}

// begun returns what may follow this place in the beginning of a mark.
func (t *markTree) begun() string {
	var ways []string
	for _, r := range t.runes() {
		if to := t.next[r]; to.next != nil {
			ways = append(ways, literal(string(r))+" "+to.begun())
		}
	}
	if ways == nil {
		return ""
	}
	return "(" + strings.Join(ways, " | ") + ")?"
}

// broken returns what may follow this place in a mark that breaks off, with the character that does
// not fit. That character begins no mark.
func (t *markTree) broken(first rune) string {
	ways := []string{class(append(t.runes(), first)...)}
	for _, r := range t.runes() {
		if to := t.next[r]; to.next != nil {
			ways = append(ways, literal(string(r))+" ("+to.broken(first)+")")
		}
	}
	return strings.Join(ways, " | ")
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
