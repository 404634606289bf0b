package main

import (
	"context"
	"errors"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/converse"
	"github.com/moeflux/moeflux-actor/internal/flags"
)

// generation is one request to the model, shown as it comes.
type generation struct {
	converse.Taken

	s       *flags.Opened
	request moeflux.Request
	chat    bool               // the request is messages to answer, not a text to continue
	used    flags.SamplingUsed // the values of sampling and where they come from
	bound   *bound             // nil if anything may come

	promptCounts *actors.Stats // what the engine had counted when the prompt had been read
}

// events makes the request.
func (g *generation) events(ctx context.Context) moeflux.Events {
	if g.chat {
		return g.s.Model.Chat(ctx, g.request)
	}
	return g.s.Model.Generate(ctx, g.request)
}

// run generates until the text ends for any reason, which it notes in the result. The result is
// there with an error too, but for its figures.
func (g *generation) run(ctx context.Context) (*runResult, error) {
	ctx, end := g.s.Span(ctx, "moeflux.run")
	defer end()
	g.Read = func(ctx context.Context) (err error) {
		g.promptCounts, err = g.s.Engine.Stats(ctx)
		return err
	}
	err := g.Take(ctx, g.events(ctx))
	r := &runResult{PromptIDs: g.Prompt.IDs, NewIDs: g.NewIDs(), Text: g.Text.String()}
	if g.request.LogProbs {
		for i := range g.Tokens {
			r.LogProbs = append(r.LogProbs, describe(&g.Tokens[i]))
		}
	}
	if g.bound != nil {
		r.Constraint = new(g.bound.used)
	}
	if g.End != nil {
		r.StopReason = g.End.Reason
		if r.Constraint != nil {
			r.Constraint.Complete = g.End.Complete
		}
	}
	return r, g.userError(err)
}

// userError says what to do about an error of the library's.
func (g *generation) userError(err error) error {
	if g.chat && errors.Is(err, moeflux.ErrEmptyPrompt) {
		return errors.New("the model's chat template makes nothing of the conversation; give a message")
	}
	return err
}

// describe turns log-probabilities into what --json prints.
func describe(t *moeflux.Token) tokenLogProbs {
	one := func(p *moeflux.Token) tokenLogProb {
		t := tokenLogProb{ID: p.ID, Token: strings.ToValidUTF8(string(p.Bytes), "\uFFFD"), Bytes: []int{}, LogProb: p.LogProb}
		for _, b := range p.Bytes {
			t.Bytes = append(t.Bytes, int(b))
		}
		return t
	}
	all := tokenLogProbs{tokenLogProb: one(t), Top: []tokenLogProb{}}
	for i := range t.Top {
		all.Top = append(all.Top, one(&t.Top[i]))
	}
	return all
}
