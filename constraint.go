package moeflux

import (
	"slices"
	"sync"

	"github.com/moeflux/moeflux-actor/stages/sample"
	"github.com/moeflux/moeflux-actor/stages/sample/constraint"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// Constraint bounds what a model may write (Request.Constraint): Choices, Regexp, GBNF and
// JSONSchema make one.
// It may be used by any number of requests and models.
type Constraint struct {
	// begin returns an automaton at the beginning of a text in the tokens of a model.
	begin  func(m *Model) (automaton, error)
	check  func() error
	all    bool   // bounds what is thought, too
	schema []byte // what JSONSchema made it of
}

// Validate reports why no model can keep to the constraint: what it was made of does not parse, is
// too large, or allows no text. A request is checked without it.
func (c *Constraint) Validate() error { return c.check() }

// Schema returns what JSONSchema made the constraint of; nil of all others, and of a nil one. A
// Generator that is no *Model keeps to it by itself.
func (c *Constraint) Schema() []byte {
	if c == nil {
		return nil
	}
	return c.schema
}

// automaton is a constraint of what the model writes. Tokens that end a text are not its matter.
type automaton interface {
	sample.Constraint
	// MayEnd reports whether the text may end here.
	MayEnd() bool
}

// within is the constraint of a request under way, for the engine. What the model thinks before it
// answers is free, but it has to come to an answer.
type within struct {
	automaton
	ends     []int32 // tokens that end a text
	think    *thinking
	complete bool
	words    []uint64 // [vocabulary/64] the mask
}

// thinking follows the reasoning of an answer; a nil one is of a text that has none.
type thinking struct {
	reasoning *chat.Reasoning
	begin     int32   // the token that begins it, while it may; else -1
	barred    []int32 // tokens that must not be in it
}

// constrain makes the constraint of the request.
func (g *generation) constrain() (*within, error) {
	c := g.r.Constraint
	if g.kind == sessionChat && (c == nil || g.orCalls()) {
		var err error
		if c, err = g.chosen(); err != nil {
			return nil, &RequestError{Field: "ToolChoice", Err: err}
		}
	}
	if c == nil {
		return nil, nil
	}
	a, err := c.begin(g.m)
	if err != nil {
		return nil, &RequestError{Field: "Constraint", Err: err}
	}
	model := g.m.engine.Model()
	w := &within{automaton: a, ends: slices.Concat(g.ends, model.EOSTokenIDs), words: make([]uint64, (model.VocabSize+63)/64)}
	if g.kind == sessionChat && !c.all {
		d, err := g.m.chat()
		if err != nil {
			return nil, err
		}
		w.think = &thinking{reasoning: d.syntax.Reasoning.NewReasoning(g.prompt.Text), begin: -1}
		if mark, ok := g.m.text.TokenID(d.syntax.Reasoning.Begin); ok && !w.think.reasoning.Open() {
			w.think.begin = mark
		}
		if g.r.ToolChoice.must() || g.orCalls() {
			w.think.bar(g.m, d.syntax.Opens())
		}
	}
	return w, nil
}

// chosen returns the constraint of the request's choice of tools, nil if that leaves all to the
// model.
func (g *generation) chosen() (*Constraint, error) {
	d, err := g.m.chat()
	if err != nil {
		return nil, err
	}
	if g.orCalls() {
		return orCalls(g.m, d, g.r)
	}
	return g.r.ToolChoice.constraint(g.m, d, g.r.Tools)
}

// orCalls reports whether an answer is bounded by a schema, unless it calls tools.
func (g *generation) orCalls() bool {
	return g.r.Constraint.Schema() != nil && len(g.r.Tools) > 0 && g.r.ToolChoice == (ToolChoice{})
}

// bar forbids marks within what is thought: with some models a call ends the reasoning without the
// reasoning's own mark, and would not be bounded.
func (t *thinking) bar(m *Model, marks []string) {
	for _, mark := range marks {
		if id, ok := m.text.TokenID(mark); ok {
			t.barred = append(t.barred, id)
		}
	}
}

// free reports whether the model is thinking.
func (w *within) free() bool { return w.think != nil && w.think.reasoning.Open() }

// opens reports whether a token begins the reasoning here.
func (w *within) opens(token int32) bool { return w.think != nil && token == w.think.begin }

// Accepts reports whether a token may come.
func (w *within) Accepts(token int32) bool {
	if slices.Contains(w.ends, token) {
		return !w.free() && w.MayEnd()
	}
	if w.free() {
		return !slices.Contains(w.think.barred, token)
	}
	return w.opens(token) || w.automaton.Accepts(token)
}

// Mask returns the tokens that may come.
func (w *within) Mask() []uint64 {
	if w.free() {
		for i := range w.words {
			w.words[i] = ^uint64(0)
		}
		for _, id := range w.think.barred {
			w.words[id/64] &^= 1 << (id % 64)
		}
	} else {
		clear(w.words[copy(w.words, w.automaton.Mask()):])
	}
	if w.think != nil && w.think.begin >= 0 {
		w.words[w.think.begin/64] |= 1 << (w.think.begin % 64)
	}
	for _, end := range w.ends {
		w.words[end/64] &^= 1 << (end % 64)
		if w.Accepts(end) {
			w.words[end/64] |= 1 << (end % 64)
		}
	}
	return w.words
}

// Advance takes the token that comes.
func (w *within) Advance(token int32) error {
	if slices.Contains(w.ends, token) {
		w.complete = true
		return nil
	}
	opens := w.opens(token)
	if w.think != nil {
		w.think.begin = -1
	}
	if opens || w.free() {
		return nil
	}
	err := w.automaton.Advance(token)
	w.complete = err == nil && w.automaton.Complete()
	return err
}

// Complete reports whether the text is complete, or an end has come.
func (w *within) Complete() bool { return w.complete }

// whole reports whether the text may end as it is.
func (w *within) whole() bool { return w != nil && (w.complete || !w.free() && w.MayEnd()) }

// said follows the text.
func (w *within) said(text string) {
	if w != nil && w.think != nil {
		w.think.reasoning.Push(text)
	}
}

// Choices bounds a text to one of these, to the byte. They are valid UTF-8.
func Choices(texts ...string) *Constraint {
	return grammar(func() (*constraint.Grammar, error) { return constraint.Choices(texts) })
}

// Regexp bounds a text to those that an expression, as of package regexp, matches as a whole.
func Regexp(expression string) *Constraint {
	return grammar(func() (*constraint.Grammar, error) { return constraint.Regexp(expression) })
}

// GBNF bounds a text to those of a grammar, see package stages/sample/constraint.
func GBNF(rules string) *Constraint {
	return grammar(func() (*constraint.Grammar, error) { return constraint.GBNF(rules) })
}

// JSONSchema bounds a text to JSON that a schema, of draft 2020-12 or 7, allows, see
// constraint.JSONSchema in package stages/sample/constraint. A keyword that constraints do not
// support is an *UnsupportedSchemaError, which names it.
func JSONSchema(schema []byte) *Constraint {
	c := grammar(func() (*constraint.Grammar, error) { return constraint.JSONSchema(schema) })
	c.schema = schema
	return c
}

// grammar makes a constraint of a grammar, which is compiled once, for the first request.
func grammar(compile func() (*constraint.Grammar, error)) *Constraint {
	compiled := sync.OnceValues(compile)
	begin := func(m *Model) (automaton, error) {
		g, err := compiled()
		if err != nil {
			return nil, err
		}
		return g.Start(m.words()), nil
	}
	return &Constraint{begin: begin, check: func() error { _, err := compiled(); return err }}
}

// vocabulary returns the tokens of the model that stand for text, and these special ones.
func (m *Model) vocabulary(specials []int32) *constraint.Vocabulary {
	tokens := make([][]byte, m.text.VocabSize())
	for id := range tokens {
		if !m.text.IsSpecial(int32(id)) || slices.Contains(specials, int32(id)) {
			tokens[id], _ = m.text.TokenBytes(int32(id))
		}
	}
	return constraint.NewVocabulary(tokens, nil)
}
