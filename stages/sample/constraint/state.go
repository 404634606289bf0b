package constraint

import "fmt"

// Grammar is the texts that a constraint allows. It never changes and may be used from many
// goroutines; what its states work out is shared, in some 64 MiB at most and a few masks.
type Grammar struct {
	m *machine
}

func newGrammar(src *source) (*Grammar, error) { return newLimitedGrammar(src, maxNodes) }

func newLimitedGrammar(src *source, nodes int) (*Grammar, error) {
	p, err := compile(src, nodes)
	if err != nil {
		return nil, err
	}
	return &Grammar{m: newMachine(p)}, nil
}

// Matches reports whether a whole text is of the grammar.
func (g *Grammar) Matches(text string) bool {
	at := g.m.current().start
	for i := range len(text) {
		at = at.after(text[i])
	}
	return at.ends
}

// Start returns the state before the first token.
func (g *Grammar) Start(v *Vocabulary) *State {
	return &State{m: g.m, v: v, at: g.m.current().start}
}

// State is where a text of a grammar stands. It is not for concurrent use; states of one grammar
// are independent of each other.
type State struct {
	m     *machine
	v     *Vocabulary
	at    *place
	ended bool
}

// RefusedError reports a token that may not come next.
type RefusedError struct {
	Token int32
	Bytes []byte // what it stands for; nil for a control token
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the constraint does not allow token %d, %q, here", e.Token, e.Bytes)
}

// Accepts reports whether a token may come next: one that goes on with the text, or an end where
// the text is complete.
func (s *State) Accepts(token int32) bool {
	_, _, ok := s.after(token)
	return ok
}

// Advance goes on by a token. A token that may not come next is a *RefusedError and changes
// nothing.
func (s *State) Advance(token int32) error {
	at, ended, ok := s.after(token)
	if !ok {
		e := &RefusedError{Token: token}
		if token >= 0 && int(token) < len(s.v.tokens) {
			e.Bytes = s.v.tokens[token]
		}
		return e
	}
	s.at, s.ended = s.m.current().moved(at), ended
	return nil
}

// after returns where a token leads.
func (s *State) after(token int32) (at *place, ended, ok bool) {
	if s.ended || token < 0 || int(token) >= len(s.v.tokens) {
		return nil, false, false
	}
	if s.v.isEnd(token) {
		return s.at, true, s.at.ends
	}
	bytes := s.v.tokens[token]
	if at = s.at; len(bytes) == 0 || len(bytes) > longestToken {
		return nil, false, false
	}
	for _, b := range bytes {
		if at = at.after(b); at == nowhere {
			return nil, false, false
		}
	}
	return at, false, true
}

// Mask returns the tokens that may come next: bit t%64 of word t/64 is token t. It is shared and
// must not be changed. No bit is set once an end has come.
func (s *State) Mask() []uint64 {
	if s.ended {
		return make([]uint64, s.v.words())
	}
	return s.at.mask(s.v)
}

// MayEnd reports whether the text is complete as it is.
func (s *State) MayEnd() bool { return s.ended || s.at.ends }

// Complete reports whether nothing may follow but an end, or one has come. At the bound of a
// counted repetition of a grammar it may be false though only the end is allowed.
func (s *State) Complete() bool { return s.ended || s.at.ends && len(s.at.items) == 0 }

// Clone returns a state of its own at the same place.
func (s *State) Clone() *State {
	c := *s
	return &c
}
