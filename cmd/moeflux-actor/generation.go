package main

import (
	"context"
	"errors"
	"strings"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/converse"
)

// generation is one request to the model, shown as it comes.
type generation struct {
	s       *session
	request moeflux.Request
	chat    bool         // the request is messages to answer, not a text to continue
	used    samplingUsed // the values of sampling and where they come from
	bound   *bound       // nil if anything may come
	show    converse.Display

	// counts is asked for what the engine has counted when the prompt has been read; nil for not at
	// all.
	counts       func(context.Context) (*actors.Stats, error)
	promptCounts *actors.Stats // its answer

	clock  runClock
	prompt moeflux.Prompt
	reused int // tokens of it that were not read
	newIDs []int32
	text   strings.Builder
	answer moeflux.Message // when it has ended
}

// events makes the request.
func (g *generation) events(ctx context.Context) moeflux.Events {
	if g.chat {
		return g.s.model.Chat(ctx, g.request)
	}
	return g.s.model.Generate(ctx, g.request)
}

// run generates until the text ends for any reason, which it notes in the result. The result is
// there with an error too, but for its figures.
func (g *generation) run(ctx context.Context) (*runResult, error) {
	ctx, end := g.s.span(ctx, "moeflux.run")
	defer end()
	r := &runResult{}
	if g.bound != nil {
		r.Constraint = new(g.bound.used)
	}
	err := g.take(ctx, r)
	if endErr := g.show.End(); err == nil { // the part that came is shown even after an error
		err = endErr
	}
	r.PromptIDs, r.NewIDs, r.Text = g.prompt.IDs, append([]int32{}, g.newIDs...), g.text.String()
	return r, g.userError(err)
}

// take takes the events as they come.
func (g *generation) take(ctx context.Context, r *runResult) error {
	for e, err := range g.events(ctx) {
		if err != nil {
			return err
		}
		switch {
		case e.Prompt != nil:
			g.prompt, g.clock.promptStart = *e.Prompt, g.clock.now()
		case e.Read != nil:
			if err := g.promptRead(ctx, e.Read); err != nil {
				return err
			}
		case e.Token != nil:
			g.clock.token()
			g.newIDs = append(g.newIDs, e.Token.ID)
			if g.request.LogProbs {
				r.LogProbs = append(r.LogProbs, describe(e.Token))
			}
		case e.End != nil:
			r.StopReason, g.answer = e.End.Reason, e.End.Message
			if r.Constraint != nil {
				r.Constraint.Complete = e.End.Complete
			}
		}
		g.text.WriteString(e.Raw)
		if err := g.show.Write(&e); err != nil {
			return err
		}
	}
	return nil
}

// promptRead notes when the prompt had been read, and what had been counted by then.
func (g *generation) promptRead(ctx context.Context, read *moeflux.Read) (err error) {
	g.reused, g.clock.promptEnd = read.Reused, g.clock.now()
	if g.counts != nil {
		g.promptCounts, err = g.counts(ctx)
	}
	return err
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

// runClock notes when what happened.
type runClock struct {
	now                                                         func() time.Time
	processStart, promptStart, promptEnd, firstToken, lastToken time.Time
}

func (c *runClock) token() {
	c.lastToken = c.now()
	if c.firstToken.IsZero() {
		c.firstToken = c.lastToken
	}
}
