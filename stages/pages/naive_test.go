package pages_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
)

// naive holds what books are about, without books: what lies in each page, and who has what. It
// counts everything anew whenever it is asked.
type naive struct {
	*testing.T
	rng   *rand.Rand
	sizes pages.Sizes
	book  *pages.Book

	texts   map[stages.SeqID]*text
	out     map[*pages.State]bool            // that callers have; true: a draft
	kept    []*pages.State                   // in the order of keeping
	pages   map[*pages.State][]stages.PageID // of kept
	content map[stages.PageID][]int32
	named   map[stages.StateID]bool // that dispatch has memory for
	told    map[*pages.State]bool   // that were given up, as the books tell it
	lastSeq stages.SeqID
	token   int32
	evicted int
}

// text is a sequence of one request at a time.
type text struct {
	pages.Text
	most     int // checkpoints
	promised int // pages
}

func newNaive(t *testing.T, seed uint64) *naive {
	rng := rand.New(rand.NewPCG(seed, 0))
	s := pages.Sizes{PageRows: 1 + rng.IntN(4), PageBytes: 10, StateBytes: 100 + rng.Int64N(400), CheckpointBytes: rng.Int64N(300)}
	if rng.IntN(2) == 0 {
		s.RecurrentBytes = 1 + rng.Int64N(40)
	}
	n := &naive{
		T: t, rng: rng, sizes: s, book: pages.New(s), texts: make(map[stages.SeqID]*text), out: make(map[*pages.State]bool),
		content: make(map[stages.PageID][]int32), named: make(map[stages.StateID]bool),
		told: make(map[*pages.State]bool),
	}
	n.book.Watch(func(s *pages.State) {
		if n.told[s] || !s.Gone() {
			t.Errorf("a state at %d is told to be gone twice, or is not", s.Pos())
		}
		n.told[s] = true
	})
	return n
}

// live returns the pages that texts and callers have.
func (n *naive) live() (holding [][]stages.PageID) {
	for _, x := range n.texts {
		holding = append(holding, x.Pages)
	}
	for s := range n.out {
		holding = append(holding, s.Pages)
	}
	return holding
}

func (n *naive) states() int { return len(n.texts) + len(n.out) }

func set(lists ...[]stages.PageID) map[stages.PageID]bool {
	all := make(map[stages.PageID]bool)
	for _, list := range lists {
		for _, id := range list {
			all[id] = true
		}
	}
	return all
}

// used returns what StateBytes must have room for if these states are kept.
func (n *naive) used(kept []*pages.State) int64 {
	all := set(n.live()...)
	for _, s := range kept {
		maps.Copy(all, set(s.Pages))
	}
	return int64(len(all)+n.promised())*n.sizes.PageBytes + int64(n.states())*n.sizes.RecurrentBytes
}

// promised returns how many pages texts have a right to.
func (n *naive) promised() (total int) {
	for _, x := range n.texts {
		total += x.promised
	}
	return total
}

// keptBytes returns what CheckpointBytes must have room for if these states are kept.
func (n *naive) keptBytes(kept []*pages.State) (total int64) {
	live, own := set(n.live()...), make(map[stages.PageID]bool)
	for _, s := range kept {
		for _, id := range s.Pages {
			if !live[id] {
				own[id] = true
			}
		}
		if s.Pos() > 0 {
			total += n.sizes.RecurrentBytes
		}
	}
	return total + int64(len(own))*n.sizes.PageBytes
}

// mayGo reports whether a kept state may be given up for lack of memory.
func (n *naive) mayGo(s *pages.State) bool {
	if s.Owner == 0 {
		return true
	}
	last := func(which func(*pages.State) bool) (found *pages.State) {
		for _, other := range n.kept {
			if other.Owner == s.Owner && which(other) {
				found = other
			}
		}
		return found
	}
	replaced := last(func(other *pages.State) bool { return !other.Ready && other.Pos() == s.Pos() }) != nil
	newest := last(func(other *pages.State) bool { return other.Ready })
	return s.Ready && s.Pos() > 0 && !replaced && s != newest
}

// after compares the books with what there is, and takes over what the books have given up.
func (n *naive) after(what string) {
	n.Helper()
	kept := n.book.Kept()
	for _, s := range n.kept {
		if s.Gone() == slices.Contains(kept, s) {
			n.Fatalf("%s: a state at %d that is gone is kept, or the other way round", what, s.Pos())
		}
		if n.told[s] != s.Gone() {
			n.Fatalf("%s: a state at %d is gone: %v, but told: %v", what, s.Pos(), s.Gone(), n.told[s])
		}
	}
	n.kept = slices.Clone(kept)
	n.pages = make(map[*pages.State][]stages.PageID)
	for _, s := range n.kept {
		n.pages[s] = s.Pages
	}
	for _, id := range n.book.Gone() {
		if !n.named[id] {
			n.Fatalf("%s: state %d is gone twice, or was never there", what, id)
		}
		delete(n.named, id)
	}
	want := make(map[stages.StateID]bool)
	for _, s := range n.kept {
		want[s.ID] = true
	}
	for s := range n.out {
		want[s.ID] = true
	}
	delete(want, 0)
	if !maps.Equal(want, n.named) {
		n.Fatalf("%s: dispatch has states %v, want %v", what, n.named, want)
	}
	if err := n.book.Check(n.live(), n.states(), n.promised()); err != nil {
		n.Fatalf("%s: %v", what, err)
	}
	if got, want := n.book.Stats().KeptBytes, n.keptBytes(n.kept); got != want {
		n.Fatalf("%s: %d bytes are kept, want %d", what, got, want)
	}
	if used := n.used(n.kept); used > n.sizes.StateBytes {
		n.Fatalf("%s: %d bytes are used of %d", what, used, n.sizes.StateBytes)
	}
	n.contents(what)
}

// contents checks that nobody's pages hold anything but its tokens.
func (n *naive) contents(what string) {
	n.Helper()
	check := func(who string, x pages.Text) {
		n.Helper()
		for i, want := range x.Tokens[:x.Len] {
			if got := n.content[x.Pages[i/n.sizes.PageRows]][i%n.sizes.PageRows]; got != want {
				n.Fatalf("%s: position %d of %s has %d, want %d", what, i, who, got, want)
			}
		}
	}
	for id, x := range n.texts {
		check(fmt.Sprintf("sequence %d", id), x.Text)
	}
	for s, draft := range n.out {
		if !draft {
			check(fmt.Sprintf("read state %d", s.ID), s.Text())
		}
	}
	for _, s := range n.kept {
		check(fmt.Sprintf("kept state %d", s.ID), s.Text())
	}
}

// write makes row i of a text's pages hold a token.
func (n *naive) write(list []stages.PageID, i int, token int32) {
	id := list[i/n.sizes.PageRows]
	if n.content[id] == nil {
		n.content[id] = make([]int32, n.sizes.PageRows)
	}
	n.content[id][i%n.sizes.PageRows] = token
}

// room asks for room and checks the answer: what went was needed, and a refusal could not be
// avoided by giving up what is only remembered.
func (n *naive) room(ask func() error, fits func(kept []*pages.State) bool) bool {
	n.Helper()
	before := n.kept
	err := ask()
	var refused *stages.StateMemoryError
	if err != nil && !errors.As(err, &refused) {
		n.Fatalf("room: %v", err)
	}
	checkpoints := slices.DeleteFunc(slices.Clone(before), func(s *pages.State) bool { return s.Owner == 0 })
	if err != nil {
		if len(n.book.Kept()) != len(before) || fits(checkpoints) {
			n.Fatalf("refused (%v), though there is room, or after giving up something", err)
		}
		return false
	}
	n.needed(before, fits, func(s *pages.State) bool { return s.Owner == 0 })
	return true
}

// needed checks that what is kept fits, that only what may go has gone, and that without the going
// of each there would be no room.
func (n *naive) needed(before []*pages.State, fits func(kept []*pages.State) bool, mayGo func(*pages.State) bool) {
	n.Helper()
	now := n.book.Kept()
	if !fits(now) {
		n.Fatalf("room was promised that is not there")
	}
	for _, s := range before {
		if slices.Contains(now, s) {
			continue
		}
		n.evicted++
		if !mayGo(s) {
			n.Fatalf("a state of sequence %d at %d went and is protected", s.Owner, s.Pos())
		}
		if fits(append(slices.Clone(now), n.before(s))) {
			n.Fatalf("a state of sequence %d at %d went, though there is room with it", s.Owner, s.Pos())
		}
	}
}

// before returns a state as it was before it was given up.
func (n *naive) before(s *pages.State) *pages.State {
	return &pages.State{ID: s.ID, Pages: n.pages[s], Tokens: s.Tokens, Owner: s.Owner}
}

// protected returns a check that everything is still kept that may not go now, but what s takes the
// place of.
func (n *naive) protected(s *pages.State) func() {
	n.Helper()
	stay := slices.DeleteFunc(slices.Clone(n.kept), func(other *pages.State) bool {
		return n.mayGo(other) || s != nil && other.Owner == s.Owner && other.Pos() == s.Pos() && other != s
	})
	return func() {
		n.Helper()
		for _, other := range stay {
			if other.Gone() {
				n.Fatalf("a state of sequence %d went and is protected", other.Owner)
			}
		}
	}
}
