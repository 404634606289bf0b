package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/process"
)

// constraintFlags bound what the model may write, by one of them.
type constraintFlags struct {
	Regex   *string `placeholder:"R" help:"Bound the text to those that a regular expression matches as a whole."`
	Schema  string  `placeholder:"FILE" help:"Bound the text to JSON that a JSON schema allows."`
	Grammar string  `placeholder:"FILE" help:"Bound the text to those of a grammar in GBNF."`
}

// constraintUsed says in what run --json prints what bounded the text.
type constraintUsed struct {
	Kind  string `json:"kind"` // schema, grammar or regex
	Regex string `json:"regex,omitempty"`
	File  string `json:"file,omitempty"` // of a schema or a grammar
	// the text is one that the constraint allows; false where it was cut short, and after --stop
	Complete bool `json:"complete"`
}

// bound is what bounds the text.
type bound struct {
	constraint *moeflux.Constraint
	used       constraintUsed
}

// bound returns what bounds the text; nil if anything may come. Opening the model may take long, so
// that what is wrong is said before.
func (f *constraintFlags) bound() (*bound, error) {
	if given := f.names(); len(given) > 1 {
		return nil, process.Usagef("%s are given; use one of them", strings.Join(given, " and "))
	}
	switch {
	case f.Regex != nil:
		c := moeflux.Regexp(*f.Regex)
		if err := c.Validate(); err != nil {
			return nil, process.Usagef("--regex: %v", err)
		}
		return &bound{c, constraintUsed{Kind: "regex", Regex: *f.Regex}}, nil
	case f.Schema != "":
		return boundByFile("schema", f.Schema, moeflux.JSONSchema)
	case f.Grammar != "":
		return boundByFile("grammar", f.Grammar, func(rules []byte) *moeflux.Constraint { return moeflux.GBNF(string(rules)) })
	}
	return nil, nil
}

// names returns the flags that are given.
func (f *constraintFlags) names() (given []string) {
	for name, is := range map[string]bool{"--schema": f.Schema != "", "--grammar": f.Grammar != "", "--regex": f.Regex != nil} {
		if is {
			given = append(given, name)
		}
	}
	slices.Sort(given)
	return given
}

func boundByFile(kind, file string, of func(content []byte) *moeflux.Constraint) (*bound, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the %s cannot be read: %w", kind, err)
	}
	c := of(content)
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("the %s in %s cannot be used: %w", kind, file, err)
	}
	return &bound{c, constraintUsed{Kind: kind, File: file}}, nil
}

// apply bounds a generation.
func (b *bound) apply(g *generation) {
	if b != nil {
		g.request.Constraint, g.bound = b.constraint, b
	}
}

// cut says why a text is not one that the constraint allows; "" if it is one.
func (u *constraintUsed) cut(reason moeflux.StopReason, maxTokens int) string {
	switch {
	case u == nil || u.Complete:
		return ""
	case reason == moeflux.StopLength:
		return fmt.Sprintf("the text is not complete: the %s needs more than the %s of -n; give a larger -n", u.Kind, figures.Counted(int64(maxTokens), "token"))
	case reason == moeflux.StopContext:
		return fmt.Sprintf("the text is not complete: the context is full before the %s is done; give a larger --ctx or a shorter prompt", u.Kind)
	case reason == moeflux.StopString:
		return fmt.Sprintf("a --stop ended the text, which may not be complete: nobody looked where the %s stood", u.Kind)
	case reason == moeflux.StopInterrupted:
		return fmt.Sprintf("the text is not complete: it was stopped before the %s was done", u.Kind)
	}
	return ""
}
