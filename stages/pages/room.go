package pages

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// There are two budgets, StateBytes and CheckpointBytes. What is kept gives way, in the order of
// victims; nothing goes before it is known that its going helps.

// Need is what somebody wants of StateBytes.
type Need struct {
	Pages  int
	States int // recurrent ones
	// Tail takes one page more if others share the page in which this text's next position lies. It
	// is nil where nobody is about to write.
	Tail *Text
	// Instead are pages that are given up for what is needed.
	Instead []stages.PageID
	// Own are pages that were promised to the same text, and of which these are some.
	Own int
	// From is a kept state that must not be given up for this, or nil.
	From *State
}

// Room makes room within StateBytes, giving up what is remembered if necessary. How many pages are
// needed may depend on that, because a page that is no longer shared need not be copied. The error
// is a *stages.StateMemoryError; nothing was given up then.
func (b *Book) Room(n Need) error {
	t := b.tally()
	if len(n.Instead) > 0 {
		t.add(live, -1, n.Instead)
	}
	others := b.promised - n.Own
	enough := func(t *tally) bool {
		return b.stateBytes(t.used+others+b.pages(n, t), t.states+n.States) <= b.sizes.StateBytes
	}
	if enough(t) || b.evictFor(t, b.texts(n.From), enough) {
		return nil
	}
	pages := b.pages(n, t)
	return &stages.StateMemoryError{
		Pages: pages, States: n.States, Need: b.stateBytes(pages, n.States), Used: b.stateBytes(t.used+others, t.states), Max: b.sizes.StateBytes,
	}
}

// Lack returns the error of what there is no room for.
func (b *Book) Lack(pages, states int) *stages.StateMemoryError {
	return &stages.StateMemoryError{
		Pages: pages, States: states, Need: b.stateBytes(pages, states), Used: b.stateBytes(b.Used()+b.promised, b.states), Max: b.sizes.StateBytes,
	}
}

// pages returns how many pages are needed by a tally.
func (b *Book) pages(n Need, t *tally) int {
	if n.Tail != nil && t.sharesTail(n.Tail, b.ledger.rows) {
		return n.Pages + 1
	}
	return n.Pages
}

// RoomToGrow makes room for a text to reach a number of positions. own of the pages were promised
// to it.
func (b *Book) RoomToGrow(t *Text, positions, own int) error {
	need := b.ToGrow(t, positions)
	if !b.sharesTail(t) && need <= own {
		return nil
	}
	return b.Room(Need{Pages: need, Tail: t, Own: own})
}

// ToGrow returns how many pages a text lacks to reach a number of positions.
func (b *Book) ToGrow(t *Text, positions int) int { return max(b.Count(positions)-len(t.Pages), 0) }

// RoomToRemember makes room within CheckpointBytes for a text of a number of positions. If it
// cannot, it gives up nothing and reports false.
func (b *Book) RoomToRemember(positions int) bool {
	need := b.recurrentBytes(positions)
	return need <= b.sizes.CheckpointBytes && b.fit(need)
}

// Settle gives up what exceeds CheckpointBytes, as far as it may: a sequence that moves elsewhere
// leaves pages that only kept states hold.
func (b *Book) Settle() {
	if b.fit(0) {
		return
	}
	alone := func(id stages.PageID) bool { return b.ledger.pages[id] == holders{kept: 1} }
	for _, v := range b.victims() {
		if v.ID != 0 || slices.ContainsFunc(v.Pages, alone) {
			b.evict(v)
		}
	}
}

// Gain returns how many bytes of StateBytes would be free without a text and its recurrent state.
func (b *Book) Gain(t *Text) int64 {
	pages := 0
	for _, id := range t.Pages {
		if b.ledger.pages[id] == (holders{live: 1}) {
			pages++
		}
	}
	return b.stateBytes(pages, 1)
}

// keptBytes returns what all that is kept takes.
func (b *Book) keptBytes() int64 { return b.keptBytesOf(b.recurrent, b.ledger.only) }

func (b *Book) keptBytesOf(recurrent, only int) int64 {
	return int64(recurrent)*b.sizes.RecurrentBytes + int64(only)*b.sizes.PageBytes
}

// stateBytes returns what pages and recurrent states take of StateBytes.
func (b *Book) stateBytes(pages, states int) int64 {
	return int64(pages)*b.sizes.PageBytes + int64(states)*b.sizes.RecurrentBytes
}

// recurrentBytes returns what a kept state of a number of positions takes besides pages.
func (b *Book) recurrentBytes(positions int) int64 {
	if positions == 0 {
		return 0
	}
	return b.sizes.RecurrentBytes
}

// victims returns what may go for lack of memory, in order: what is remembered, least recently used
// first; then checkpoints, oldest first. A sequence's newest checkpoint, the one at position 0,
// those being made, and those that they replace are protected.
func (b *Book) victims() (all []*State) {
	newest := make(map[stages.SeqID]*State)
	for _, s := range b.kept {
		if s.Owner == 0 {
			all = append(all, s)
		} else if s.Ready {
			newest[s.Owner] = s
		}
	}
	slices.SortFunc(all, func(x, y *State) int { return cmp.Compare(x.used, y.used) })
	for _, s := range b.kept {
		if s.Owner != 0 && s.Ready && s != newest[s.Owner] && s.Pos() > 0 && !b.beingReplaced(s) {
			all = append(all, s)
		}
	}
	return all
}

// texts returns those of victims that are only remembered, all but one.
func (b *Book) texts(but *State) []*State {
	return slices.DeleteFunc(b.victims(), func(s *State) bool { return s.Owner != 0 || s == but })
}

// evictFor gives up victims, in their order, until enough holds, sparing those that make no
// difference. If enough does not hold even without all of them, it gives up none and reports false;
// t is then what the books would say without them.
func (b *Book) evictFor(t *tally, victims []*State, enough func(*tally) bool) bool {
	n := 0
	for ; !enough(t) && n < len(victims); n++ {
		t.change(victims[n], -1)
	}
	if !enough(t) {
		return false
	}
	going := victims[:n]
	for i := n - 2; i >= 0; i-- { // spare what makes no difference
		t.change(going[i], 1)
		if enough(t) {
			going = slices.Delete(going, i, i+1)
		} else {
			t.change(going[i], -1)
		}
	}
	for _, v := range going {
		b.evict(v)
	}
	return true
}

func (b *Book) evict(s *State) {
	b.evicted++
	b.Forget(s)
}

// fit makes room for a number of bytes within CheckpointBytes. If it cannot, it gives up nothing
// and reports false.
func (b *Book) fit(need int64) bool {
	if b.keptBytes()+need <= b.sizes.CheckpointBytes {
		return true
	}
	return b.evictFor(b.tally(), b.victims(), b.fits(need))
}

func (b *Book) fits(need int64) func(*tally) bool {
	return func(t *tally) bool { return b.keptBytesOf(t.recurrent, t.only)+need <= b.sizes.CheckpointBytes }
}
