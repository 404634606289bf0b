package pages

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// State is a frozen state, which no step changes: pages, which it shares, and the recurrent state,
// which dispatch keeps under its name. A draft is one that is still being filled.
type State struct {
	ID     stages.StateID // of a kept one 0: it is empty, or nothing of it is recurrent
	Pages  []stages.PageID
	Tokens []int32 // as of a Text, with which it shares them; none of a draft
	Ready  bool    // dispatch has made it
	// of a kept one: whose checkpoint it is; 0 if it is remembered for any text
	Owner stages.SeqID

	gone bool   // it was given up
	used uint64 // of a kept one: when it was last used, by Book.uses
}

// Pos returns how many positions it has.
func (s *State) Pos() int { return len(s.Tokens) }

// Text returns what a sequence holds that stands there.
func (s *State) Text() Text { return Text{Len: s.Pos(), Pages: s.Pages, Tokens: s.Tokens} }

// Gone reports whether it was given up.
func (s *State) Gone() bool { return s.gone }

// Read returns a frozen state of a text, for a caller. It counts against StateBytes until Release.
func (b *Book) Read(t Text) *State {
	s := b.freeze(t, live)
	s.ID = b.name()
	b.states++
	return s
}

// Draft returns a state for a caller to fill, with pages of its own for a number of positions. It
// counts against StateBytes until Release or Adopt.
func (b *Book) Draft(positions int) *State {
	s := &State{ID: b.name()}
	for range b.Count(positions) {
		s.Pages = append(s.Pages, b.ledger.take())
	}
	b.states++
	return s
}

// Detach returns a state that has what a text holds. The text keeps its tokens and has no pages.
// What was counted by AddStates for the text's recurrent state is the state's from now on.
func (b *Book) Detach(t *Text) *State {
	s := &State{ID: b.name(), Pages: t.Pages, Tokens: t.Tokens[:t.Len:t.Len]}
	t.Pages = nil
	return s
}

// Release gives up a state that a caller has.
func (b *Book) Release(s *State) {
	b.states--
	b.drop(s, live)
}

// Adopt makes t hold a draft, of these tokens. Its recurrent memory becomes that of t's sequence,
// so it is not among those Gone.
func (b *Book) Adopt(t *Text, s *State, tokens []int32) {
	b.Place(t, Text{Len: len(tokens), Pages: s.Pages, Tokens: tokens}, len(tokens))
	b.ledger.release(live, s.Pages...)
	b.states--
	s.Pages, s.gone = nil, true
}

// freeze returns a state of what a text holds, without a name.
func (b *Book) freeze(t Text, by holder) *State {
	s := &State{Pages: slices.Clone(t.Pages[:b.Count(t.Len)]), Tokens: t.Tokens[:t.Len:t.Len]}
	b.ledger.hold(by, s.Pages...)
	return s
}

func (b *Book) name() stages.StateID {
	b.lastName--
	return b.lastName
}

// drop gives up a state.
func (b *Book) drop(s *State, by holder) {
	s.gone = true
	b.ledger.release(by, s.Pages...)
	s.Pages = nil
	if s.ID != 0 {
		b.gone = append(b.gone, s.ID)
	}
}
