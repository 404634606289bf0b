package moeflux

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/moeflux/moeflux-actor/stages/sample/constraint"
	"github.com/moeflux/moeflux-actor/tokenizer/chat/tools"
)

// ToolChoice says whether an answer of Chat calls tools. The zero value leaves it to the model; at
// most one field may be set. The choice binds by a constraint: an answer that is not cut short
// (End.Complete) keeps to it, whatever the model likes. What it thinks before is free.
//
// The arguments of a call that had to come are JSON that the tool's schema allows. Models that
// write arguments without quotes (Qwen3-Coder, GLM, MiniMax) give them in the order of the
// properties, and a string of theirs is bound by its enum alone.
type ToolChoice struct {
	// None: no call. The model is told of the tools all the same, so that what the engine remembers
	// of the conversation is of use.
	None bool
	// Required: one call or more, of any of Request.Tools, and no text.
	Required bool
	// Name: one call of this tool, and no text.
	Name string
}

// must reports whether there has to be a call.
func (c ToolChoice) must() bool { return c.Required || c.Name != "" }

func (c ToolChoice) check(r *Request) error {
	named := func(t *Tool) bool { return t.Name() == c.Name }
	switch {
	case c.None && c.must() || c.Required && c.Name != "":
		return errors.New("more than one field is set")
	case !c.must():
		return nil
	case r.Constraint != nil:
		return errors.New("a call has to come, but Request.Constraint bounds the text")
	case len(r.Tools) == 0:
		return errors.New("a call has to come, but there are no Request.Tools")
	case c.Name != "" && !slices.ContainsFunc(r.Tools, named):
		return fmt.Errorf("there is no tool %q in Request.Tools", c.Name)
	}
	return nil
}

// constraint returns what the choice allows a model of this dialect to write, nil for anything.
func (c ToolChoice) constraint(m *Model, d *dialect, list []*Tool) (*Constraint, error) {
	var g tools.Grammar
	var err error
	switch {
	case c.None && len(list) > 0 && d.syntax.Calls != tools.None:
		g = d.syntax.TextGrammar()
	case !c.must():
		return nil, nil
	default:
		if c.Name != "" {
			list = slices.DeleteFunc(slices.Clone(list), func(t *Tool) bool { return t.Name() != c.Name })
		}
		g, err = d.syntax.CallGrammar(list, c.Required)
	}
	if err != nil {
		return nil, err
	}
	return m.grammar(g, c.must() || d.syntax.Framed())
}

// orCalls returns the answers that are calls, or what the request's schema allows.
func orCalls(m *Model, d *dialect, r *Request) (*Constraint, error) {
	g, err := d.syntax.CallOrJSONGrammar(r.Tools, r.Constraint.schema)
	if err != nil {
		return nil, err
	}
	return m.grammar(g, true)
}

// grammar returns the constraint of a grammar, with marks of calls among the tokens or without.
func (m *Model) grammar(g tools.Grammar, marks bool) (*Constraint, error) {
	whole, err := m.grammars.of(g)
	if e, ok := errors.AsType[*constraint.RuleError](err); ok {
		return nil, fmt.Errorf("%s: %w", g.Names[e.Rule], e.Err)
	}
	if err != nil {
		return nil, err
	}
	words := m.words
	if marks {
		words = m.markedWords
	}
	return &Constraint{begin: func(*Model) (automaton, error) { return whole.Start(words()), nil }}, nil
}

// markVocabulary is the model's vocabulary with the special tokens that are marks of calls; that is
// the plain one where there are none.
func (m *Model) markVocabulary() *constraint.Vocabulary {
	d, err := m.chat()
	if err != nil {
		return m.words() // nobody chats
	}
	marks := m.specials(d.syntax.Holds)
	if len(marks) == 0 {
		return m.words()
	}
	return m.vocabulary(marks)
}

// specials returns the special tokens that are what is wanted.
func (m *Model) specials(wanted func(token string) bool) (ids []int32) {
	for id := range int32(m.text.VocabSize()) {
		if b, ok := m.text.TokenBytes(id); ok && m.text.IsSpecial(id) && wanted(string(b)) {
			ids = append(ids, id)
		}
	}
	return ids
}

// grammars keeps the grammars of the last choices: most requests have the tools of one before.
type grammars struct {
	mu    sync.Mutex
	known map[string]*constraint.Grammar
}

// maxGrammars bounds how many are kept; each may take some megabytes.
const maxGrammars = 8

func (k *grammars) of(g tools.Grammar) (*constraint.Grammar, error) {
	key := fmt.Sprintf("%q %q", g.Rules, g.Schemas) // maps print in order
	k.mu.Lock()
	defer k.mu.Unlock()
	if whole := k.known[key]; whole != nil {
		return whole, nil
	}
	whole, err := constraint.GBNFWith(g.Rules, g.Schemas)
	if err != nil {
		return nil, err
	}
	if len(k.known) >= maxGrammars || k.known == nil {
		k.known = map[string]*constraint.Grammar{}
	}
	k.known[key] = whole
	return whole, nil
}
