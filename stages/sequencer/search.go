package sequencer

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
	"github.com/moeflux/moeflux-actor/stages/prefix"
)

// search finds states by the tokens they hold, among what is kept and among the sequences. All of
// one scope are in a tree, up to date after every step. Nobody learns of the texts of other scopes,
// not even by how fast an answer comes.
type search struct {
	trees map[string]*prefix.Tree[known] // by scope; none is empty
	book  *pages.Book
	kept  map[*pages.State]*prefix.Holder[known]
	last  uint64 // order of the state that was kept last
	whole bool   // there is recurrent state, so that a state serves as a whole or not at all
	rows  int    // positions of one page
}

// known is a state whose text is in the tree.
type known struct {
	// Of those that serve equally well the first one is taken: what is kept in the order of
	// keeping, then sequences by their names.
	order uint64
	scope string
	kept  *pages.State // nil: a sequence
	seq   *sequence
}

// source holds the beginning of a text.
type source struct {
	pos  int
	text pages.Text
	from stages.StateID // its recurrent state
	kept *pages.State   // nil: a sequence
	seq  *sequence      // nil: a kept state
}

// add makes a new sequence known.
func (h *search) add(s *sequence) {
	s.known = h.insert(s.Tokens, known{order: 1<<63 | uint64(s.id), scope: s.scope, seq: s})
}

// insert adds a text to those of its scope.
func (h *search) insert(tokens []int32, k known) *prefix.Holder[known] {
	tree := h.trees[k.scope]
	if tree == nil {
		tree = new(prefix.Tree[known])
		h.trees[k.scope] = tree
	}
	return tree.Insert(tokens, k)
}

// drop removes a text from those of its scope.
func (h *search) drop(t *prefix.Holder[known]) {
	scope := t.Value.scope
	tree := h.trees[scope]
	if tree.Remove(t); tree.Len() == 0 {
		delete(h.trees, scope)
	}
}

// grew notes that a sequence has more tokens after those that it had.
func (h *search) grew(s *sequence) { h.trees[s.scope].Extend(s.known, s.Tokens) }

// placed notes that a sequence has other tokens.
func (h *search) placed(s *sequence) { h.trees[s.scope].Set(s.known, s.Tokens) }

// remove forgets a sequence.
func (h *search) remove(s *sequence) { h.drop(s.known) }

// keep makes a state of a scope known that is kept from now on.
func (h *search) keep(f *pages.State, scope string) {
	h.last++
	h.kept[f] = h.insert(f.Tokens, known{order: h.last, scope: scope, kept: f})
}

// forget forgets a kept state that was given up.
func (h *search) forget(f *pages.State) {
	h.drop(h.kept[f])
	delete(h.kept, f)
}

// deepest returns the kept state or sequence of a scope that has the most of the beginning of a
// text, up to most positions; s is passed over. With recurrent state it must match as a whole;
// without, its own beginning is enough.
func (h *search) deepest(s *sequence, scope string, text []int32, most int) source {
	best, pos := h.longest(scope, text[:most], func(k known, n int) int {
		switch t := k.seq; {
		case k.kept != nil && k.kept.Ready:
			return n
		case k.kept != nil || t == s || t.poison != nil || t.op != nil || t.away != nil:
			return 0
		case t.req == nil:
			return n
		case h.whole:
			return 0
		}
		return n - n%h.rows // a step may be writing to their last page, after these positions
	})
	switch {
	case pos == 0:
		return source{}
	case best.kept != nil:
		return source{pos: pos, text: best.kept.Text(), from: best.kept.ID, kept: best.kept}
	}
	return source{pos: pos, text: best.seq.Text, from: best.seq.id.State(), seq: best.seq}
}

// nearest returns the state that has the most of a sequence's text up to a position, and how much:
// one of its own checkpoints, or a remembered one. It returns nil and 0 if there is none.
func (h *search) nearest(s *sequence, pos int) (*pages.State, int) {
	best, at := h.longest(s.scope, s.Tokens[:pos], func(k known, n int) int {
		if f := k.kept; f == nil || !f.Ready || f.Owner != s.id && f.Owner != 0 {
			return 0
		}
		return n
	})
	return best.kept, at
}

// serving returns a remembered state that serves every text of the scope that one of these tokens
// would serve, or nil. (A checkpoint goes with its sequence.)
func (h *search) serving(scope string, tokens []int32) *pages.State {
	var best known
	for t, n := range h.holding(scope, tokens) {
		k := t.Value
		if n < len(tokens) {
			break
		}
		if k.remembered() && (best.kept == nil || k.order < best.order) {
			best = k
		}
	}
	return best.kept
}

// forgetServed gives up what is remembered and serves no text that f does not serve: it has the
// same tokens or, without recurrent state, fewer of them.
func (h *search) forgetServed(f *pages.State) {
	var served []known
	for t, n := range h.trees[h.kept[f].Value.scope].Beginnings(f.Tokens) {
		if h.whole && n < f.Pos() {
			break
		}
		if t.Value.remembered() && t.Value.kept != f {
			served = append(served, t.Value)
		}
	}
	slices.SortFunc(served, func(a, b known) int { return cmp.Compare(b.order, a.order) })
	for _, k := range served {
		h.book.Forget(k.kept)
	}
}

// forgetOthers gives up the checkpoints of a sequence that no longer match the beginning of its
// text.
func (h *search) forgetOthers(s *sequence) {
	h.book.ForgetIf(func(f *pages.State) bool { return f.Owner == s.id && !h.kept[f].Begins(s.known) })
}

// remembered reports whether it is a state that is kept for any text.
func (k known) remembered() bool { return k.kept != nil && k.kept.Owner == 0 }

// longest returns the state of which most positions, and at least one, can be used for a text.
// usable says how many of those that they have in common.
func (h *search) longest(scope string, text []int32, usable func(k known, common int) int) (best known, pos int) {
	for t, common := range h.holding(scope, text) {
		if common < pos {
			break
		}
		n := usable(t.Value, common)
		if n > pos || n == pos && n > 0 && t.Value.order < best.order {
			best, pos = t.Value, n
		}
	}
	return best, pos
}

// holding returns the states of a scope that hold something of the beginning of a text, and how
// much, those with most first. With recurrent state it is all that they have.
func (h *search) holding(scope string, text []int32) iter.Seq2[*prefix.Holder[known], int] {
	tree := h.trees[scope]
	if tree == nil {
		tree = new(prefix.Tree[known])
	}
	if h.whole {
		return tree.Beginnings(text)
	}
	return tree.Sharing(text)
}

// check compares the tree with the texts that there are. Tests ask it.
func (h *search) check(seqs map[stages.SeqID]*sequence) error {
	for _, s := range seqs {
		if !slices.Equal(s.known.Text(), s.Tokens) {
			return fmt.Errorf("sequencer: sequence %d is searched as %v and holds %v", s.id, s.known.Text(), s.Tokens)
		}
	}
	for _, f := range h.book.Kept() {
		if t := h.kept[f]; t == nil || !slices.Equal(t.Text(), f.Tokens) {
			return fmt.Errorf("sequencer: a kept state of %v is searched as another one", f.Tokens)
		}
	}
	texts := 0
	for scope, tree := range h.trees {
		if tree.Len() == 0 {
			return fmt.Errorf("sequencer: no text is left in the scope %q", scope)
		}
		if err := tree.Check(); err != nil {
			return err
		}
		texts += tree.Len()
	}
	if n := len(seqs) + len(h.book.Kept()); texts != n || len(h.kept) != len(h.book.Kept()) {
		return fmt.Errorf("sequencer: %d texts are searched, %d of them kept; there are %d, %d kept", texts, len(h.kept), n, len(h.book.Kept()))
	}
	return nil
}
