package pages_test

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
)

// settle lets the books give up what is beyond CheckpointBytes.
func (n *naive) settle() {
	before := slices.Clone(n.book.Kept())
	n.kept = before
	defer n.protected(nil)()
	n.book.Settle()
	enough := func(kept []*pages.State) bool { return n.keptBytes(kept) <= n.sizes.CheckpointBytes }
	if enough(n.book.Kept()) {
		n.needed(before, enough, n.mayGo)
		return
	}
	n.settled()
}

// settled checks that what is kept beyond CheckpointBytes may not go, or would free nothing.
func (n *naive) settled() {
	n.kept = slices.Clone(n.book.Kept())
	if n.keptBytes(n.kept) <= n.sizes.CheckpointBytes {
		return
	}
	for _, s := range n.kept {
		rest := slices.DeleteFunc(slices.Clone(n.book.Kept()), func(other *pages.State) bool { return other == s })
		if n.mayGo(s) && n.keptBytes(rest) < n.keptBytes(n.book.Kept()) {
			n.Fatalf("settle: a state at %d takes room beyond the budget and may go", s.Pos())
		}
	}
}

// list takes a state that the books have just begun to keep.
func (n *naive) list(s *pages.State) {
	if s.ID != 0 {
		n.named[s.ID] = true
	}
	if s.Ready != (s.Pos() == 0 || n.sizes.RecurrentBytes == 0) {
		n.Fatalf("keep: ready %v at %d with %d recurrent bytes", s.Ready, s.Pos(), n.sizes.RecurrentBytes)
	}
}

func (n *naive) keep(x *text, id stages.SeqID) {
	need := int64(0)
	if x.Len > 0 {
		need = n.sizes.RecurrentBytes
	}
	fits := n.keptBytes(n.kept)+need <= n.sizes.CheckpointBytes
	stay := slices.DeleteFunc(slices.Clone(n.kept), func(s *pages.State) bool { return n.mayGo(s) || s.Owner == id && s.Pos() == x.Len })
	fits = fits || n.keptBytes(stay)+need <= n.sizes.CheckpointBytes
	if err := n.book.RoomToKeep(id, x.Len); (err == nil) != fits {
		n.Fatalf("keep: %v, though there is room in the end: %v", err, fits)
	} else if err != nil {
		return
	}
	s := n.book.Keep(x.Text, id)
	n.list(s)
	if s.Ready {
		n.stands(s)
	}
}

// ready ends the copy of the recurrent state of one that is kept.
func (n *naive) ready(*text, stages.SeqID) {
	for _, s := range n.kept {
		if !s.Ready {
			s.Ready = true
			if s.Owner != 0 {
				n.stands(s)
			}
			return
		}
	}
}

func (n *naive) stands(s *pages.State) {
	most := n.texts[s.Owner].most
	n.kept = slices.Clone(n.book.Kept())
	defer n.protected(s)()
	n.book.Stands(s, most)
	of := slices.DeleteFunc(slices.Clone(n.book.Kept()), func(other *pages.State) bool { return other.Owner != s.Owner || !other.Ready })
	n.kept = slices.Clone(n.book.Kept())
	may, older := 0, false
	for i, other := range of {
		if n.mayGo(other) {
			may++
		}
		older = older || other.Pos() == s.Pos() && i < slices.Index(of, s)
	}
	if len(of) == 0 || len(of) > most && may > 0 || older {
		n.Fatalf("stands: %d checkpoints are left of a sequence that keeps %d, %d of them may go; an older one at %d: %v", len(of), most, may, s.Pos(), older)
	}
	n.settled()
}

func (n *naive) remember(x *text, _ stages.SeqID) {
	before := n.kept
	need := int64(0)
	if x.Len > 0 {
		need = n.sizes.RecurrentBytes
	}
	fits := func(kept []*pages.State) bool { return n.keptBytes(kept)+need <= n.sizes.CheckpointBytes }
	if !n.book.RoomToRemember(x.Len) {
		protected := slices.DeleteFunc(slices.Clone(before), n.mayGo)
		if len(n.book.Kept()) != len(before) || fits(protected) {
			n.Fatal("remember: refused, though there is room, or after giving up something")
		}
		return
	}
	n.needed(before, fits, n.mayGo)
	n.list(n.book.Keep(x.Text, 0))
}

func (n *naive) forget(x *text, id stages.SeqID) {
	x.most = n.rng.IntN(4)
	switch {
	case n.rng.IntN(4) == 0:
		n.book.ForgetOf(0)
	case n.rng.IntN(4) == 0:
		n.book.ForgetOf(id)
	case len(n.kept) > 0:
		n.book.Forget(n.kept[n.rng.IntN(len(n.kept))])
	}
}

func (n *naive) read(x *text, _ stages.SeqID) {
	if n.room(func() error { return n.book.Room(pages.Need{States: 1}) }, n.fitsStates(0, 1)) {
		s := n.book.Read(x.Text)
		n.out[s], n.named[s.ID] = false, true
	}
}

func (n *naive) draft(*text, stages.SeqID) {
	positions := n.rng.IntN(10)
	count := (positions + n.sizes.PageRows - 1) / n.sizes.PageRows
	if n.room(func() error { return n.book.Room(pages.Need{Pages: count, States: 1}) }, n.fitsStates(count, 1)) {
		s := n.book.Draft(positions)
		if len(s.Pages) != count {
			n.Fatalf("draft: %d pages for %d positions", len(s.Pages), positions)
		}
		n.out[s], n.named[s.ID] = true, true
	}
}

// giveBack ends what a caller has of a state. A text may adopt a draft.
func (n *naive) giveBack(x *text, _ stages.SeqID) {
	var list []*pages.State
	for s := range n.out {
		list = append(list, s)
	}
	if len(list) == 0 {
		return
	}
	s := slices.MinFunc(list, func(a, b *pages.State) int { return int(b.ID - a.ID) })
	draft := n.out[s]
	delete(n.out, s)
	if !draft || n.rng.IntN(2) == 0 {
		n.book.Release(s)
		return
	}
	tokens := make([]int32, len(s.Pages)*n.sizes.PageRows)
	for i := range tokens {
		n.token++
		tokens[i] = n.token
		n.write(s.Pages, i, n.token)
	}
	n.book.Adopt(&x.Text, s, tokens)
	delete(n.named, s.ID) // its memory is the sequence's now
	n.settle()
}

// detach takes a text's state from it, and gives it back; or the text gets one with the same
// contents.
func (n *naive) detach(x *text, _ stages.SeqID) {
	elsewhere := n.rng.IntN(2) == 0 && n.book.Room(pages.Need{Pages: len(x.Pages)}) == nil
	s, used := n.book.Detach(&x.Text), n.book.Used()
	if x.Pages != nil || s.Pos() != x.Len || n.book.Used() != used {
		n.Fatalf("detach: %d pages are left, the state has %d of %d positions", len(x.Pages), s.Pos(), x.Len)
	}
	if elsewhere {
		n.named[s.ID] = true // dispatch has taken it
		n.book.Release(s)
		s = n.book.Draft(x.Len)
		for i, token := range x.Tokens[:x.Len] {
			n.write(s.Pages, i, token)
		}
	}
	n.book.Adopt(&x.Text, s, x.Tokens)
	n.book.AddStates(1)
	n.settle()
}
