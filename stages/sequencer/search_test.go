package sequencer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/pages"
)

// TestSearch compares what is found in the tree with what a scan over every text finds, in random
// states of sequences and of what is kept.
func TestSearch(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 60
	}
	found := make(map[string]int)
	for seed := range seeds {
		c := newSearched(seed)
		for range 120 {
			c.change()
			if err := c.search.check(c.seqs); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if err := c.compare(found); err != nil {
				t.Fatalf("seed %d, recurrent %d: %v", seed, c.cfg.RecurrentBytes, err)
			}
		}
	}
	for _, what := range []string{"deepest kept", "deepest sequence", "nearest", "serving", "served", "others"} {
		if found[what] < int(seeds) {
			t.Errorf("%s was found %d times only: the test does not reach what it is for", what, found[what])
		}
	}
}

// searched is a stage whose sequences are changed without steps.
type searched struct {
	*Core
	rng     *rand.Rand
	lastSeq stages.SeqID
	scopes  map[*pages.State]string
}

func newSearched(seed uint64) *searched {
	rng := rand.New(rand.NewPCG(seed, 0))
	return &searched{rng: rng, lastSeq: 40, scopes: map[*pages.State]string{}, Core: New(Config{
		PageRows: 1 + rng.IntN(4), RecurrentBytes: int64(seed % 2), StateBytes: 1 << 30, CheckpointBytes: 1 << 30, StepsInFlight: 1,
	})}
}

func (c *searched) tokens(most int) (list []int32) {
	for range c.rng.IntN(most + 1) {
		list = append(list, int32(c.rng.IntN(2)))
	}
	return list
}

// some returns one of the sequences, in the order of their names, or nil.
func (c *searched) some() *sequence {
	list := inOrder(c.seqs)
	if len(list) == 0 {
		return nil
	}
	return list[c.rng.IntN(len(list))]
}

func (c *searched) change() {
	s := c.some()
	if s == nil || len(c.seqs) < 5 && c.rng.IntN(4) == 0 {
		c.lastSeq-- // so that names are not in the order of opening
		s = &sequence{id: c.lastSeq, scope: []string{"a", "a", "b"}[c.rng.IntN(3)], claim: claim{grant: grant{share: c.asks.queue.Join(0, "", 1)}}}
		c.seqs[s.id] = s
		c.search.add(s)
		return
	}
	kept := c.book.Kept()
	switch c.rng.IntN(10) {
	case 0, 1, 2:
		add := c.tokens(4)
		c.book.Grow(&s.Text, s.Len+len(add))
		s.Tokens = append(s.Tokens, add...)
		s.Len += len(add)
		c.search.grew(s)
	case 3:
		c.cut(s, c.rng.IntN(s.Len+1))
	case 4:
		from := c.some()
		c.place(s, from.Text, c.rng.IntN(from.Len+1))
	case 5:
		s.poison, s.op, s.req = nil, nil, nil
		switch c.rng.IntN(5) {
		case 0:
			s.poison = errors.New("poisoned")
		case 1:
			s.op = new(operation)
		case 2:
			s.req = new(request)
		}
	case 6, 7, 8:
		owner := s.id
		if c.rng.IntN(2) == 0 {
			owner = 0
		}
		f := c.book.Keep(s.Text, owner)
		f.Ready = c.rng.IntN(4) > 0
		c.search.keep(f, s.scope)
		c.scopes[f] = s.scope
	default:
		if len(kept) > 6 {
			c.book.Forget(kept[c.rng.IntN(len(kept))])
		} else if c.rng.IntN(4) == 0 {
			c.book.ForgetOf(s.id)
			c.remove(s)
		}
	}
}

// compare asks for everything that is searched for. It counts what was found.
func (c *searched) compare(found map[string]int) error {
	s := c.some()
	if s == nil {
		return nil
	}
	scan := &scan{book: c.book, seqs: c.seqs, whole: c.cfg.RecurrentBytes > 0, rows: c.cfg.PageRows, scopes: c.scopes}
	text := slices.Concat(s.Tokens[:c.rng.IntN(s.Len+1)], c.tokens(5), []int32{0})
	most := len(text) - 1 - c.rng.IntN(min(len(text), 2))
	got, want := c.search.deepest(s, s.scope, text, most), scan.deepest(s, text, most)
	if got.pos != want.pos || got.kept != want.kept || got.from != want.from || !slices.Equal(got.text.Pages, want.text.Pages) {
		return fmt.Errorf("deepest of %v up to %d is %+v, want %+v", text, most, got, want)
	}
	switch {
	case got.pos > 0 && got.kept != nil:
		found["deepest kept"]++
	case got.pos > 0:
		found["deepest sequence"]++
	}
	pos := c.rng.IntN(s.Len + 1)
	near, at := c.search.nearest(s, pos)
	if wantNear, wantAt := scan.nearest(s, pos); near != wantNear || at != wantAt {
		return fmt.Errorf("nearest to %d of %v is %d of %v, want %d of %v", pos, s.Tokens, at, near, wantAt, wantNear)
	}
	if near != nil {
		found["nearest"]++
	}
	if s.Len > 0 {
		f, want := c.search.serving(s.scope, s.Tokens), scan.serving(s.scope, s.Tokens)
		if f != want {
			return fmt.Errorf("%v serves %v, want %v", f, s.Tokens, want)
		}
		if f != nil {
			found["serving"]++
		}
	}
	return c.compareForgotten(s, found)
}

// compareForgotten gives up what has become useless, at times.
func (c *searched) compareForgotten(s *sequence, found map[string]int) error {
	scan := &scan{book: c.book, seqs: c.seqs, whole: c.cfg.RecurrentBytes > 0, scopes: c.scopes}
	kept := c.book.Kept()
	if c.rng.IntN(4) > 0 || len(kept) == 0 {
		return nil
	}
	what, f := "served", kept[c.rng.IntN(len(kept))]
	var want, got []*pages.State // in the order in which they go
	goes := func(old *pages.State) bool {
		return old != f && c.scopes[old] == c.scopes[f] && old.Owner == 0 && scan.serves(f.Tokens, old.Tokens)
	}
	forget := func() { c.search.forgetServed(f) }
	switch {
	case c.rng.IntN(2) == 0:
		what = "others"
		goes = func(f *pages.State) bool { return f.Owner == s.id && common(f.Tokens, s.Tokens) < f.Pos() }
		forget = func() { c.search.forgetOthers(s) }
	case f.Owner != 0 || f.Pos() == 0: // it is asked of what is remembered, which has tokens
		return nil
	}
	for _, old := range slices.Backward(kept) {
		if goes(old) && (what != "served" || old.Pos() > 0) {
			want = append(want, old)
		}
	}
	c.book.Watch(func(f *pages.State) {
		c.search.forget(f)
		got = append(got, f)
	})
	forget()
	c.book.Watch(c.search.forget)
	found[what] += len(got)
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: %d were given up, want %d, or in another order", what, len(got), len(want))
	}
	return nil
}

// BenchmarkDeepest resumes a text that goes on from one of 1,000 remembered ones of 4,000 tokens,
// whose first 2,000 are the same: by a scan over every text, and by the tree.
func BenchmarkDeepest(b *testing.B) {
	const texts, tokens, shared = 1000, 4000, 2000
	c := New(Config{PageRows: 64, StateBytes: 1 << 40, CheckpointBytes: 1 << 40, StepsInFlight: 1})
	var text []int32
	for i := range texts {
		s := &sequence{id: stages.SeqID(i + 1)}
		c.seqs[s.id] = s
		c.search.add(s)
		c.book.Grow(&s.Text, tokens)
		for at := range tokens {
			token := int32(at)
			if at >= shared {
				token += int32(7 * i)
			}
			s.Tokens = append(s.Tokens, token)
		}
		s.Len = tokens
		c.search.grew(s)
		c.search.keep(c.book.Keep(s.Text, 0), "")
		if i == 700 {
			text = slices.Concat(s.Tokens[:3900], []int32{1, 2, 3})
		}
		c.remove(s)
	}
	asks := new(sequence)
	scan := &scan{book: c.book, seqs: c.seqs, rows: c.cfg.PageRows}
	tree := func(s *sequence, text []int32, most int) source { return c.search.deepest(s, s.scope, text, most) }
	for name, deepest := range map[string]func(*sequence, []int32, int) source{"scan": scan.deepest, "tree": tree} {
		b.Run("by="+name, func(b *testing.B) {
			for b.Loop() {
				if f := deepest(asks, text, len(text)-1); f.pos != 3900 {
					b.Fatalf("%d positions were found, want 3900", f.pos)
				}
			}
		})
	}
}
