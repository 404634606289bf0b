package pages_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
)

// TestBook does random things to books and to a model that counts everything anew.
func TestBook(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 40
	}
	evicted, kept := 0, 0
	for seed := range seeds {
		n := newNaive(t, seed)
		for range 300 {
			name, do := n.pick()
			do()
			n.after(name)
			kept = max(kept, len(n.kept))
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		evicted += n.evicted
	}
	if evicted < int(seeds) || kept < 5 {
		t.Errorf("%d states were given up and at most %d kept at once: the test does not reach what it is for", evicted, kept)
	}
}

// pick returns something to do that makes sense now.
func (n *naive) pick() (string, func()) {
	ops := []struct {
		name string
		do   func(*text, stages.SeqID)
	}{
		{"eval", n.eval}, {"eval", n.eval}, {"eval", n.eval}, {"promise", n.promise}, {"fail", n.fail}, {"cut", n.cut}, {"follow", n.follow},
		{"keep", n.keep}, {"keep", n.keep}, {"remember", n.remember}, {"remember", n.remember}, {"ready", n.ready},
		{"forget", n.forget}, {"read", n.read}, {"draft", n.draft}, {"return", n.giveBack}, {"detach", n.detach}, {"close", n.close},
	}
	ids := make([]stages.SeqID, 0, len(n.texts))
	for id := range n.texts {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if len(ids) == 0 || n.rng.IntN(15) == 0 {
		return "open", n.open
	}
	op, id := ops[n.rng.IntN(len(ops))], ids[n.rng.IntN(len(ids))]
	return op.name, func() { op.do(n.texts[id], id) }
}

// fitsStates returns whether there is room for more pages and recurrent states.
func (n *naive) fitsStates(pageCount, states int) func([]*pages.State) bool {
	return func(kept []*pages.State) bool {
		return n.used(kept)+int64(pageCount)*n.sizes.PageBytes+int64(states)*n.sizes.RecurrentBytes <= n.sizes.StateBytes
	}
}

func (n *naive) open() {
	if !n.room(func() error { return n.book.Room(pages.Need{States: 1}) }, n.fitsStates(0, 1)) {
		return
	}
	n.lastSeq++
	n.texts[n.lastSeq] = &text{most: n.rng.IntN(4)}
	n.book.AddStates(1)
}

func (n *naive) close(x *text, id stages.SeqID) {
	n.book.Promise(-x.promised)
	n.book.ForgetOf(id)
	n.book.Place(&x.Text, pages.Text{}, 0)
	n.book.AddStates(-1)
	delete(n.texts, id)
	n.settle()
}

// shared reports whether a text's next position lies in a page that somebody else has, too.
func (n *naive) shared(x *text, kept []*pages.State) bool {
	if x.Len%n.sizes.PageRows == 0 {
		return false
	}
	id, holders := x.Pages[x.Len/n.sizes.PageRows], 0
	lists := n.live()
	for _, s := range kept {
		lists = append(lists, s.Pages)
	}
	for _, list := range lists {
		if slices.Contains(list, id) {
			holders++
		}
	}
	return holders > 1
}

// promise promises a text pages for rows more, in place of what it was promised before. What it
// was promised it gets, whoever holds the rest.
func (n *naive) promise(x *text, _ stages.SeqID) {
	want := n.book.ToGrow(&x.Text, x.Len+n.rng.IntN(9))
	own := x.promised
	fits := func(kept []*pages.State) bool { return n.fitsStates(want-own, 0)(kept) }
	if n.room(func() error { return n.book.Room(pages.Need{Pages: want, Own: own}) }, fits) {
		n.book.Promise(want - own)
		x.promised = want
	} else if want <= own {
		n.Fatalf("promise: %d pages are refused to a text that was promised %d", want, own)
	}
}

// grow gives a text room for rows more.
func (n *naive) grow(x *text, rows int) (stages.PageCopy, bool) {
	fits := func(kept []*pages.State) bool {
		need := (x.Len+rows+n.sizes.PageRows-1)/n.sizes.PageRows - len(x.Pages)
		if n.shared(x, kept) {
			need++
		}
		return n.fitsStates(need-x.promised, 0)(kept)
	}
	if need := n.book.ToGrow(&x.Text, x.Len+rows); need < x.promised { // it needs no more
		n.book.Promise(need - x.promised)
		x.promised = need
	}
	if !n.room(func() error { return n.book.RoomToGrow(&x.Text, x.Len+rows, x.promised) }, fits) {
		if !n.book.TailHeld(&x.Text) && n.book.ToGrow(&x.Text, x.Len+rows) <= x.promised {
			n.Fatalf("grow: a text is refused what it was promised")
		}
		return stages.PageCopy{}, false
	}
	shared := n.shared(x, n.book.Kept())
	cp := n.book.Grow(&x.Text, x.Len+rows)
	n.book.Promise(-x.promised)
	x.promised = 0
	if (cp.From != cp.To) != shared {
		n.Fatalf("grow: a copy %v, though the page is shared: %v", cp, shared)
	}
	return cp, true
}

func (n *naive) eval(x *text, _ stages.SeqID) {
	rows := 1 + n.rng.IntN(6)
	cp, ok := n.grow(x, rows)
	if !ok {
		return
	}
	if cp.From != cp.To {
		n.content[cp.To] = slices.Clone(n.content[cp.From])
	}
	n.book.Copied(cp)
	for i := range rows {
		n.token++
		n.write(x.Pages, x.Len+i, n.token)
		x.Tokens = append(x.Tokens, n.token)
	}
	x.Len += rows
}

// fail grows a text and goes back, after a few rows or none were written.
func (n *naive) fail(x *text, _ stages.SeqID) {
	rows := 1 + n.rng.IntN(6)
	cp, ok := n.grow(x, rows)
	if !ok {
		return
	}
	for i := range n.rng.IntN(rows + 1) {
		n.write(x.Pages, x.Len+i, -1)
	}
	n.book.Back(&x.Text, cp)
}

func (n *naive) cut(x *text, _ stages.SeqID) {
	n.book.Place(&x.Text, x.Text, n.rng.IntN(x.Len+1))
	n.settle()
}

// follow makes a text stand where another one does, or a kept state.
func (n *naive) follow(x *text, _ stages.SeqID) {
	if i := n.rng.IntN(len(n.kept) + 1); i < len(n.kept) {
		s := n.kept[i]
		n.book.Use(s)
		n.book.Place(&x.Text, s.Text(), s.Pos())
	} else if other := n.texts[1+stages.SeqID(n.rng.IntN(int(n.lastSeq)))]; other != nil {
		n.book.Place(&x.Text, other.Text, n.rng.IntN(other.Len+1))
	}
	n.settle()
}

// TestInstead gives pages up for a need, without which there is no room.
func TestInstead(t *testing.T) {
	b := pages.New(pages.Sizes{PageRows: 2, PageBytes: 10, StateBytes: 40, CheckpointBytes: 40})
	var x pages.Text
	b.Grow(&x, 6)
	x.Len, x.Tokens = 6, []int32{1, 2, 3, 4, 5, 6}
	if got := b.Gain(&x); got != 30 {
		t.Errorf("%d bytes would be free without it, want 30", got)
	}
	if err := b.Room(pages.Need{Pages: 3}); err == nil {
		t.Error("three pages beside three fit into four")
	}
	if err := b.Room(pages.Need{Pages: 4, Instead: x.Pages}); err != nil {
		t.Errorf("four pages instead of three: %v", err)
	}
	fork := pages.Text{}
	if b.Place(&fork, x, 3); b.Gain(&x) != 10 || b.Gain(&fork) != 0 {
		t.Errorf("%d and %d bytes would be free without one of two that share, want 10 and 0", b.Gain(&x), b.Gain(&fork))
	}
	b.Place(&fork, pages.Text{}, 0)
	s := b.Keep(x, 0) // in the way of what takes the pages' place, as long as it is remembered
	if err := b.Room(pages.Need{Pages: 4, Instead: x.Pages}); err != nil || !s.Gone() {
		t.Errorf("with the pages remembered: %v, gone %v", err, s.Gone())
	}
}

// TestVictims gives up what was used longest ago, and spares what would make no difference.
func TestVictims(t *testing.T) {
	b := pages.New(pages.Sizes{PageRows: 1, PageBytes: 10, StateBytes: 100, CheckpointBytes: 100})
	state := func(positions int) *pages.State {
		var x pages.Text
		b.Grow(&x, positions)
		x.Len, x.Tokens = positions, make([]int32, positions)
		s := b.Keep(x, 0)
		b.Place(&x, pages.Text{}, 0)
		return s
	}
	small, used, large := state(1), state(2), state(5)
	b.Use(used)
	for _, s := range rand.Perm(3) { // asking for what there is room for changes nothing
		if err := b.Room(pages.Need{Pages: min(s, 2)}); err != nil || small.Gone() || used.Gone() || large.Gone() {
			t.Fatalf("room for %d of 2 pages that are free: %v", s, err)
		}
	}
	if err := b.Room(pages.Need{Pages: 6}); err != nil || small.Gone() || used.Gone() || !large.Gone() {
		t.Errorf("room for 6 pages: %v; gone: small %v, used since %v, large %v, want the large one alone", err, small.Gone(), used.Gone(), large.Gone())
	}
	if err := b.Room(pages.Need{Pages: 8}); err != nil || !small.Gone() || used.Gone() {
		t.Errorf("room for 8 pages: %v; gone: small %v, used since %v, want the one used longest ago", err, small.Gone(), used.Gone())
	}
}
