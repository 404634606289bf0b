package pages

import (
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// Sizes says what states take, and the two budgets. All fields are required.
type Sizes struct {
	PageRows  int // positions of one page
	PageBytes int64
	// RecurrentBytes is the size of a recurrent state. 0 means that there are none.
	RecurrentBytes int64
	// StateBytes is the most for all pages in use, and for the recurrent states of sequences, of
	// drafts, and of states that callers read.
	StateBytes int64
	// CheckpointBytes is the most for what is kept: recurrent states, and pages that nobody else
	// holds.
	CheckpointBytes int64
}

// Book keeps the books of all states.
type Book struct {
	sizes     Sizes
	ledger    ledger
	kept      []*State // in the order of keeping
	recurrent int      // of kept, those with a recurrent state
	states    int      // recurrent states that count against StateBytes
	promised  int      // pages that texts have a right to and have not taken
	lastName  stages.StateID
	uses      uint64 // of kept states so far
	gone      []stages.StateID
	forgotten func(*State) // is told of each kept state that was given up, or nil

	remembered, evicted int64
}

// New returns books that are empty.
func New(s Sizes) *Book { return &Book{sizes: s, ledger: ledger{rows: s.PageRows}} }

// Watch has a function called for each kept state when it was given up, so that who finds states by
// their tokens forgets it, too. The function must not change the books.
func (b *Book) Watch(forgotten func(*State)) { b.forgotten = forgotten }

// Text is what a sequence holds.
type Text struct {
	Len   int             // positions
	Pages []stages.PageID // of Len positions, or of more that it is about to reach
	// [Len], below 0 where they are not known; never overwritten, for frozen states share it
	Tokens []int32
}

// Count returns how many pages a number of positions takes.
func (b *Book) Count(positions int) int { return b.ledger.count(positions) }

// Most returns how many pages StateBytes has room for without any recurrent state.
func (b *Book) Most() int {
	return int(min(b.sizes.StateBytes/max(b.sizes.PageBytes, 1), math.MaxInt32))
}

// Used returns how many pages are in use.
func (b *Book) Used() int { return b.ledger.used() }

// AddStates counts n recurrent states more, or fewer, against StateBytes: those of sequences.
func (b *Book) AddStates(n int) { b.states += n }

// Promise counts n pages more, or fewer, as promised to texts that have yet to take them. They
// count against StateBytes like those in use.
func (b *Book) Promise(n int) { b.promised += n }

// Promised returns how many bytes are promised.
func (b *Book) Promised() int64 { return b.stateBytes(b.promised, 0) }

// Fits reports whether StateBytes would do for pages and recurrent states if there were no others.
func (b *Book) Fits(pages, states int) bool { return b.stateBytes(pages, states) <= b.sizes.StateBytes }

// Gone returns the names of the states that were given up since it was asked last: dispatch may
// free what it has of them. The names are the caller's until the books are changed.
func (b *Book) Gone() []stages.StateID {
	list := b.gone
	b.gone = b.gone[:0]
	return list
}

// Stats returns the figures of what is kept.
func (b *Book) Stats() stages.StateStats {
	return stages.StateStats{
		Kept: len(b.kept), KeptBytes: b.keptBytes(), KeptMax: b.sizes.CheckpointBytes,
		Remembered: b.remembered, Evicted: b.evicted,
	}
}

// Place makes t hold the first pos positions of another text, or of itself. from's slices are left
// alone.
func (b *Book) Place(t *Text, from Text, pos int) {
	shared := from.Pages[:b.Count(pos)]
	b.ledger.hold(live, shared...)
	held := t.Pages
	t.Pages = slices.Clone(shared)
	b.ledger.release(live, held...)
	t.Tokens, t.Len = from.Tokens[:pos:pos], pos
}

// Grow gives a text pages for a number of positions, for which there is room. If others share the
// page that it will write to next, it gets one of its own, and Grow returns the copy to be made;
// the original is held until Copied or Back.
func (b *Book) Grow(t *Text, positions int) (cp stages.PageCopy) {
	if b.sharesTail(t) {
		tail := &t.Pages[t.Len/b.ledger.rows]
		cp = stages.PageCopy{From: *tail, To: b.ledger.take()}
		*tail = cp.To
	}
	for len(t.Pages) < b.Count(positions) {
		t.Pages = append(t.Pages, b.ledger.take())
	}
	return cp
}

// sharesTail reports whether a text's next position lies in a page that others hold, too.
func (b *Book) sharesTail(t *Text) bool {
	return t.Len%b.ledger.rows != 0 && b.ledger.shared(t.Pages[t.Len/b.ledger.rows])
}

// TailHeld reports whether a text's next position lies in a page that somebody holds who does not
// give way: a sequence, a state that a caller has, a checkpoint.
func (b *Book) TailHeld(t *Text) bool {
	if !b.sharesTail(t) {
		return false
	}
	id := t.Pages[t.Len/b.ledger.rows]
	if b.ledger.pages[id].live > 1 {
		return true
	}
	return slices.ContainsFunc(b.kept, func(s *State) bool { return s.Owner != 0 && slices.Contains(s.Pages, id) })
}

// Copied notes that the copy that Grow asked for is made, or is wanted no more.
func (b *Book) Copied(cp stages.PageCopy) {
	if cp.From != cp.To {
		b.ledger.release(live, cp.From)
	}
}

// Back takes back pages past a text's length, and a copy that Grow asked for and that was not made.
func (b *Book) Back(t *Text, cp stages.PageCopy) {
	if cp.From != cp.To {
		t.Pages[t.Len/b.ledger.rows] = cp.From
		b.ledger.release(live, cp.To)
	}
	n := b.Count(t.Len)
	b.ledger.release(live, t.Pages[n:]...)
	t.Pages = t.Pages[:n]
}
