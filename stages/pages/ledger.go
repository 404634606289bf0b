package pages

import "github.com/moeflux/moeflux-actor/stages"

// ledger counts the holders of each page. A page without holders is free. Live holders are
// sequences, drafts, and states that are being read; kept ones are checkpoints and what is
// remembered, which have a budget of their own.
type ledger struct {
	rows  int       // positions of a page
	pages []holders // of all pages that were ever in use
	free  []stages.PageID
	only  int // pages that are kept and not live
}

type holders struct{ live, kept int32 }

// holder says which count of a page is meant.
type holder uint8

const (
	live holder = iota
	kept
)

// inUse returns 1 for a page that has a holder.
func (h holders) inUse() int { return min(int(h.live+h.kept), 1) }

// keptOnly returns 1 for a page that is kept and not live.
func (h holders) keptOnly() int {
	if h.live > 0 {
		return 0
	}
	return min(int(h.kept), 1)
}

// used returns how many pages are not free.
func (l *ledger) used() int { return len(l.pages) - len(l.free) }

// count returns how many pages a number of positions takes.
func (l *ledger) count(positions int) int { return (positions + l.rows - 1) / l.rows }

// take returns a free page, which has a live holder from now on.
func (l *ledger) take() stages.PageID {
	if n := len(l.free) - 1; n >= 0 {
		id := l.free[n]
		l.free = l.free[:n]
		l.pages[id].live = 1
		return id
	}
	l.pages = append(l.pages, holders{live: 1})
	return stages.PageID(len(l.pages) - 1)
}

// shared reports whether a page has more than one holder.
func (l *ledger) shared(id stages.PageID) bool { return l.pages[id].live+l.pages[id].kept > 1 }

// hold adds a holder to pages that already have one.
func (l *ledger) hold(by holder, list ...stages.PageID) {
	for _, id := range list {
		h := &l.pages[id]
		switch {
		case by == kept:
			h.kept++
		default:
			if h.live == 0 {
				l.only--
			}
			h.live++
		}
	}
}

// release takes a holder away. Pages without holders are free.
func (l *ledger) release(by holder, list ...stages.PageID) {
	for _, id := range list {
		h := &l.pages[id]
		switch {
		case by == kept:
			if h.kept--; h.kept == 0 && h.live == 0 {
				l.only--
			}
		default:
			if h.live--; h.live == 0 && h.kept > 0 {
				l.only++
			}
		}
		if h.live == 0 && h.kept == 0 {
			l.free = append(l.free, id)
		}
	}
}
