package sequencer

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
)

// search finds states by the tokens they hold, among what is kept and among the sequences.
type search struct {
	book  *pages.Book
	seqs  map[stages.SeqID]*sequence
	whole bool // there is recurrent state, so that a state serves as a whole or not at all
	rows  int  // positions of one page
}

// source holds the beginning of a text.
type source struct {
	pos  int
	text pages.Text
	from stages.StateID // its recurrent state
	kept *pages.State   // nil: a sequence
}

// deepest returns the kept state or other sequence that has the most of the beginning of a text, up
// to most positions. With recurrent state it must match as a whole; without, its own beginning is
// enough.
func (h *search) deepest(s *sequence, text []int32, most int) (best source) {
	for _, f := range h.book.Kept() {
		if n := h.usable(f.Tokens, text, most); f.Ready && n > best.pos {
			best = source{pos: n, text: f.Text(), from: f.ID, kept: f}
		}
	}
	for _, t := range h.inOrder() {
		if t == s || t.poison != nil || t.op != nil {
			continue
		}
		n := h.usable(t.Tokens[:t.Len], text, most)
		if t.req != nil { // a step may be writing to their last page, after these positions
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

// nearest returns the state that has the most of a sequence's text up to a position, and how much:
// one of its own checkpoints, or a remembered one. It returns nil and 0 if there is none.
func (h *search) nearest(s *sequence, pos int) (best *pages.State, at int) {
	for _, f := range h.book.Kept() {
		if f.Ready && (f.Owner == s.id || f.Owner == 0) {
			if n := h.usable(f.Tokens, s.Tokens[:s.Len], pos); n > at {
				best, at = f, n
			}
		}
	}
	return best, at
}

// serving returns a remembered state that serves every text that one of these tokens would serve,
// or nil. (A checkpoint goes with its sequence.)
func (h *search) serving(tokens []int32) *pages.State {
	for _, f := range h.book.Kept() {
		if f.Owner == 0 && h.serves(f.Tokens, tokens) {
			return f
		}
	}
	return nil
}

// forgetServed gives up what is remembered and serves no text that f does not serve.
func (h *search) forgetServed(f *pages.State) {
	h.book.ForgetIf(func(old *pages.State) bool { return old != f && old.Owner == 0 && h.serves(f.Tokens, old.Tokens) })
}

// forgetOthers gives up the checkpoints of a sequence that no longer match the beginning of its
// text.
func (h *search) forgetOthers(s *sequence) {
	h.book.ForgetIf(func(f *pages.State) bool { return f.Owner == s.id && common(f.Tokens, s.Tokens) < f.Pos() })
}

// usable returns how many positions of a state a text can use.
func (h *search) usable(tokens, text []int32, most int) int {
	if h.whole && (len(tokens) > most || len(tokens) == 0 || tokens[len(tokens)-1] != text[len(tokens)-1]) {
		return 0
	}
	n := min(common(tokens, text), most)
	if n < len(tokens) && h.whole {
		return 0
	}
	return n
}

// serves reports whether one state can replace another for every text: it has the same tokens or,
// without recurrent state, the same and more.
func (h *search) serves(tokens, other []int32) bool {
	n := common(tokens, other)
	return n == len(other) && (n == len(tokens) || !h.whole)
}

// inOrder returns the sequences by their names, so that nothing depends on the order of a map.
func (h *search) inOrder() []*sequence {
	list := make([]*sequence, 0, len(h.seqs))
	for _, s := range h.seqs {
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
