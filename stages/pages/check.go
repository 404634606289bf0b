package pages

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// Check compares the books with what there is: the pages of each live holder, that is of texts and
// of the states that callers have, how many recurrent states those have, and how many pages are
// promised. Tests ask it.
func (b *Book) Check(holding [][]stages.PageID, states, promised int) error {
	want := make(map[stages.PageID]holders)
	for _, list := range holding {
		for _, id := range list {
			h := want[id]
			h.live++
			want[id] = h
		}
	}
	recurrent := 0
	for _, s := range b.kept {
		for _, id := range s.Pages {
			h := want[id]
			h.kept++
			want[id] = h
		}
		if s.ID != 0 {
			recurrent++
		}
	}
	if promised != b.promised {
		return fmt.Errorf("pages: %d pages are counted as promised, there are %d", b.promised, promised)
	}
	if states != b.states || recurrent != b.recurrent {
		return fmt.Errorf("pages: %d recurrent states and %d kept ones are counted, there are %d and %d", b.states, b.recurrent, states, recurrent)
	}
	if err := b.Bounded(); err != nil {
		return err
	}
	return b.ledger.check(want)
}

// Bounded reports whether what is used and what is promised keeps within StateBytes.
func (b *Book) Bounded() error {
	if used := b.stateBytes(b.Used(), b.states); used+b.Promised() > b.sizes.StateBytes {
		return fmt.Errorf("pages: states take %d of %d bytes, and %d more are promised", used, b.sizes.StateBytes, b.Promised())
	}
	return nil
}

// check compares the counts with holders that were counted anew.
func (l *ledger) check(want map[stages.PageID]holders) error {
	only := 0
	for id, h := range l.pages {
		if h != want[stages.PageID(id)] {
			return fmt.Errorf("pages: page %d counts %+v holders, there are %+v", id, h, want[stages.PageID(id)])
		}
		only += h.keptOnly()
	}
	free := make(map[stages.PageID]bool, len(l.free))
	for _, id := range l.free {
		if free[id] || want[id] != (holders{}) {
			return fmt.Errorf("pages: page %d is on the free list twice, or while still held", id)
		}
		free[id] = true
	}
	switch {
	case len(want)+len(free) != len(l.pages):
		return fmt.Errorf("pages: %d pages were in use, %d are held and %d free", len(l.pages), len(want), len(free))
	case only != l.only:
		return fmt.Errorf("pages: %d pages are counted as kept alone, there are %d", l.only, only)
	}
	return nil
}
