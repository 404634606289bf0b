package pages

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// tally is what the books say, or would say if some of what is kept were gone.
type tally struct {
	pages     []holders // the ledger's until they are changed
	own       bool      // pages is a copy
	used      int       // pages with a holder
	only      int       // pages that are kept and not live
	recurrent int       // kept recurrent states
	states    int       // other recurrent states
}

// tally returns what the books say. It is the caller's to change.
func (b *Book) tally() *tally {
	return &tally{pages: b.ledger.pages, used: b.ledger.used(), only: b.ledger.only, recurrent: b.recurrent, states: b.states}
}

// add adds n holders, 1 or -1, to each page.
func (t *tally) add(by holder, n int32, list []stages.PageID) {
	if !t.own {
		t.pages, t.own = slices.Clone(t.pages), true
	}
	for _, id := range list {
		h := &t.pages[id]
		was := *h
		if by == kept {
			h.kept += n
		} else {
			h.live += n
		}
		t.used += h.inUse() - was.inUse()
		t.only += h.keptOnly() - was.keptOnly()
	}
}

// change adds a kept state n times, 1 or -1.
func (t *tally) change(s *State, n int) {
	t.add(kept, int32(n), s.Pages)
	if s.ID != 0 {
		t.recurrent += n
	}
}

// sharesTail is Book.sharesTail by these books.
func (t *tally) sharesTail(x *Text, rows int) bool {
	if x.Len%rows == 0 {
		return false
	}
	h := t.pages[x.Pages[x.Len/rows]]
	return h.live+h.kept > 1
}
