package moeflux

import (
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// Constraint bounds what a model may write (Request.Constraint); Choices makes one. It may be used
// by any number of requests and models.
type Constraint struct {
	// begin returns an automaton at the beginning of a text in the tokens of a model.
	begin func(m *Model) (automaton, error)
	all   bool // bounds what is thought, too
}

var negInf = float32(math.Inf(-1))

// automaton says which tokens a text may have. Those that end it are not its matter.
type automaton interface {
	Allows(token int32) bool
	// Forbid makes the logits [vocab] of tokens that may not come negative infinity.
	Forbid(logits []float32)
	// Advance takes the token that comes.
	Advance(token int32)
	// Ends reports whether the text may end here, and whether nothing may follow.
	Ends() (may, must bool)
}

// within is the constraint of a request under way, for the engine. What the model thinks before it
// answers is free, but it has to come to an answer.
type within struct {
	automaton
	ends  []int32 // tokens that end a text
	think *thinking
}

// thinking follows the reasoning of an answer; a nil one is of a text that has none.
type thinking struct {
	reasoning *chat.Reasoning
	begin     int32 // the token that begins it, while it may; else -1
}

// constrain makes the constraint of the request.
func (g *generation) constrain() (*within, error) {
	if g.r.Constraint == nil {
		return nil, nil
	}
	a, err := g.r.Constraint.begin(g.m)
	if err != nil {
		return nil, &RequestError{Field: "Constraint", Err: err}
	}
	w := &within{automaton: a, ends: slices.Concat(g.ends, g.m.engine.Model().EOSTokenIDs)}
	if g.kind == sessionChat && !g.r.Constraint.all {
		d, err := g.m.chat()
		if err != nil {
			return nil, err
		}
		w.think = &thinking{reasoning: d.syntax.Reasoning.NewReasoning(g.prompt.Text), begin: -1}
		if mark, ok := g.m.text.TokenID(d.syntax.Reasoning.Begin); ok && !w.think.reasoning.Open() {
			w.think.begin = mark
		}
	}
	return w, nil
}

// free reports whether the model is thinking.
func (w *within) free() bool { return w.think != nil && w.think.reasoning.Open() }

// opens reports whether a token begins the reasoning here.
func (w *within) opens(token int32) bool { return w.think != nil && token == w.think.begin }

// Allows reports whether a token may come.
func (w *within) Allows(token int32) bool {
	if slices.Contains(w.ends, token) {
		may, _ := w.Ends()
		return may && !w.free()
	}
	return w.free() || w.opens(token) || w.automaton.Allows(token)
}

// Forbid makes the logits of tokens that may not come negative infinity.
func (w *within) Forbid(logits []float32) {
	if w.free() {
		for _, end := range w.ends {
			logits[end] = negInf
		}
		return
	}
	keep := w.ends
	if w.think != nil && w.think.begin >= 0 {
		keep = append(slices.Clip(keep), w.think.begin)
	}
	kept := make([]float32, len(keep))
	for i, t := range keep {
		kept[i] = logits[t]
	}
	w.automaton.Forbid(logits)
	for i, t := range keep {
		if logits[t] = negInf; w.Allows(t) {
			logits[t] = kept[i]
		}
	}
}

// Advance takes the token that comes, and reports whether the text is complete with it.
func (w *within) Advance(token int32) (complete bool) {
	if slices.Contains(w.ends, token) {
		return true
	}
	opens := w.opens(token)
	if w.think != nil {
		w.think.begin = -1
	}
	if opens || w.free() {
		return false
	}
	w.automaton.Advance(token)
	_, must := w.Ends()
	return must
}

// said follows the text.
func (w *within) said(text string) {
	if w != nil && w.think != nil {
		w.think.reasoning.Push(text)
	}
}
