package sequencer

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
)

// scan is search without a tree: it compares the tokens of every state.
type scan struct {
	book  *pages.Book
	seqs  map[stages.SeqID]*sequence
	whole bool
	rows  int

	scopes map[*pages.State]string // of what is kept
}

func (h *scan) deepest(s *sequence, text []int32, most int) (best source) {
	for _, f := range h.book.Kept() {
		if n := h.usable(f.Tokens, text, most); f.Ready && h.scopes[f] == s.scope && n > best.pos {
			best = source{pos: n, text: f.Text(), from: f.ID, kept: f}
		}
	}
	for _, t := range inOrder(h.seqs) {
		if t == s || t.scope != s.scope || t.poison != nil || t.op != nil {
			continue
		}
		n := h.usable(t.Tokens[:t.Len], text, most)
		if t.req != nil {
			if n -= n % h.rows; h.whole {
				n = 0
			}
		}
		if n > best.pos {
			best = source{pos: n, text: t.Text, from: t.id.State()}
		}
	}
	return best
}

func (h *scan) nearest(s *sequence, pos int) (best *pages.State, at int) {
	for _, f := range h.book.Kept() {
		if f.Ready && h.scopes[f] == s.scope && (f.Owner == s.id || f.Owner == 0) {
			if n := h.usable(f.Tokens, s.Tokens[:s.Len], pos); n > at {
				best, at = f, n
			}
		}
	}
	return best, at
}

func (h *scan) serving(scope string, tokens []int32) *pages.State {
	for _, f := range h.book.Kept() {
		if f.Owner == 0 && h.scopes[f] == scope && h.serves(f.Tokens, tokens) {
			return f
		}
	}
	return nil
}

// usable returns how many positions of a state a text can use.
func (h *scan) usable(tokens, text []int32, most int) int {
	n := min(common(tokens, text), most)
	if n < len(tokens) && h.whole {
		return 0
	}
	return n
}

// serves reports whether one state can replace another for every text: it has the same tokens or,
// without recurrent state, the same and more.
func (h *scan) serves(tokens, other []int32) bool {
	n := common(tokens, other)
	return n == len(other) && (n == len(tokens) || !h.whole)
}

// inOrder returns the sequences by their names.
func inOrder(seqs map[stages.SeqID]*sequence) []*sequence {
	list := make([]*sequence, 0, len(seqs))
	for _, s := range seqs {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *sequence) int { return int(a.id) - int(b.id) })
	return list
}

// common returns the length of the common prefix of two texts.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
