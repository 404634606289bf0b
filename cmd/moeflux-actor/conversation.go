package main

import (
	"context"
	"errors"
	"fmt"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/converse"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/io/modelfiles"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// runChat answers one message, or converses if there is none and a person sits there.
func (c *runCmd) runChat(ctx context.Context, inv *process.Invocation, within *bound) error {
	if within != nil && c.Tools != "" {
		return process.Usagef("--tools does nothing with --%s, which leaves the model no call; use one of them", within.used.Kind)
	}
	kept, err := c.openKept(ctx, inv, true)
	if err != nil {
		return err
	}
	defer kept.close()
	system, err := c.SystemText()
	if err != nil {
		return err
	}
	args, err := c.TemplateArgs()
	if err != nil {
		return err
	}
	tools, err := c.ReadTools()
	if err != nil {
		return err
	}
	choice, err := c.Choice(tools)
	if err != nil {
		return err
	}
	converses := !c.hasPrompt() && inv.StdinTerminal
	if converses && c.JSON {
		return process.Usagef("--json prints one answer: give a message with -p TEXT, -f FILE, or - for stdin")
	}
	var message string
	if !converses {
		if message, err = c.readPrompt(inv, false, true); err != nil {
			return err
		}
	}
	dir, err := flags.ModelDir(ctx, inv, c.Model, c.CacheDir)
	if err != nil {
		return err
	}
	if _, err := modelfiles.Template(dir, chat.Options{}); err != nil { // opening the model may take long
		return cannotChat(err)
	}
	return c.withModel(ctx, inv, func(s *flags.Opened) error {
		first, err := c.generation(inv, s, c.defaultMax())
		if err != nil {
			return err
		}
		within.apply(first)
		first.chat, first.request.TemplateArgs, first.request.Tools = true, args, tools
		first.request.ToolChoice = choice
		v := &converse.Conversation{Session: new(moeflux.Session), System: system}
		if err := c.takeUp(ctx, s, v, kept); err != nil {
			return err
		}
		defer v.Session.Close()
		first.request.Session = v.Session
		if converses {
			return c.converse(ctx, inv, v, first)
		}
		return c.answerOnce(ctx, inv, v, first, message)
	})
}

// takeUp goes on with a conversation that is kept, and keeps this one.
func (c *runCmd) takeUp(ctx context.Context, s *flags.Opened, v *converse.Conversation, kept *keptText) error {
	if kept == nil {
		return nil
	}
	v.Session = kept.session
	if err := kept.attach(ctx, s); err != nil {
		return err
	}
	v.TakeUp(c.System == nil)
	v.Keep = kept.save
	if kept.goesOn() {
		s.Say("session %q goes on: %d messages, %d positions", kept.name, len(v.All()), v.Session.Positions())
	}
	return nil
}

// cannotChat says why a model's chat template is of no use.
func cannotChat(err error) error {
	if errors.As(err, new(*moeflux.NoTemplateError)) {
		return fmt.Errorf("this model cannot chat; leave out --chat to continue a text: %w", err)
	}
	return fmt.Errorf("the chat template cannot be used: %w", err)
}

// answerText returns the display of an answer.
func (c *runCmd) answerText(inv *process.Invocation) *converse.AnswerText {
	a := &converse.AnswerText{Plain: converse.PlainText{Terminal: inv.StdoutTerminal}}
	a.Dim = inv.StdoutTerminal && !inv.Env.Dumb && !inv.Env.NoColour
	if !c.JSON {
		a.Plain.Out = inv.Stdout
	}
	return a
}

// answerOnce answers one message and prints what run prints.
func (c *runCmd) answerOnce(ctx context.Context, inv *process.Invocation, v *converse.Conversation, g *generation, message string) error {
	v.Messages = append(v.Messages, moeflux.Message{Role: moeflux.User, Content: message})
	if err := v.Say(); err != nil {
		return err
	}
	shown := c.answerText(inv)
	g.Show = shown
	var save func(context.Context) error
	if v.Keep != nil {
		save = func(ctx context.Context) error {
			if !v.Answered() {
				inv.Say("the message was not answered; the session is as it was")
				return nil
			}
			return v.Keep(ctx)
		}
	}
	return c.once(ctx, inv, g, func(r *runResult) {
		thought, said := shown.Thought.String(), shown.Said.String()
		r.Prompt, r.Reasoning, r.Content, r.ToolCalls = &g.Prompt.Text, &thought, &said, callsOf(g.End)
	}, save)
}

// converse talks with the person at the terminal until they leave.
func (c *runCmd) converse(ctx context.Context, inv *process.Invocation, v *converse.Conversation, first *generation) error {
	v.Ask = c.asks(inv, v, first)
	d := &converse.Dialogue{Conversation: v, Notes: inv.Stderr, Explain: flags.OneLine, Fatal: fatal, Context: first.s.Engine.Info().Context}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	edited := inv.StdoutTerminal && !inv.Env.Dumb
	d.Lines = converse.NewPlainLines(process.NewCancelReader(ctx, inv.Stdin), inv.Stderr)
	if edited {
		var err error
		if d.Lines, err = inv.Env.Editor(); err != nil {
			return err
		}
	}
	defer d.Lines.Close()
	defer inv.Env.Interrupts.Catch(func() {
		// Between answers an editor has Ctrl-C as a key. What comes as a signal then was meant for
		// the answer before.
		if !d.Interrupt() && !edited {
			leave(process.ErrInterrupted)
		}
	})()
	return d.Run(ctx)
}

// asks returns what has the model answer, each time like first.
func (c *runCmd) asks(inv *process.Invocation, v *converse.Conversation, first *generation) func(context.Context, func() bool) (converse.Answer, error) {
	answers := uint64(0) // given so far
	return func(ctx context.Context, interrupted func() bool) (converse.Answer, error) {
		g := *first
		if seed := g.request.Sampling.Seed; seed != nil {
			g.request.Sampling.Seed = new(*seed + answers) // so that trying again gives another answer
		}
		answers++
		if m := v.Messages; len(m) > 0 && m[len(m)-1].Role == moeflux.ToolResult {
			g.request.ToolChoice = moeflux.ToolChoice{} // else there would be calls for ever
		}
		g.Show, g.request.Interrupted = c.answerText(inv), interrupted
		g.Clock.Start = g.Now() // the person waits from here on
		r, err := g.run(ctx)
		if err != nil {
			return converse.Answer{}, err
		}
		stats, err := runStats(context.WithoutCancel(ctx), &g)
		if err != nil {
			return converse.Answer{}, err
		}
		return converse.Answer{Reason: r.StopReason, Figures: stats.line()}, nil
	}
}

// callsOf returns the calls of an answer as --json prints them; nil for none.
func callsOf(end *moeflux.End) []toolCall {
	if end == nil {
		return nil
	}
	var calls []toolCall
	for _, c := range end.Message.ToolCalls {
		call := toolCall{ID: c.ID, Type: "function"}
		call.Function.Name, call.Function.Arguments = c.Name, c.Arguments
		calls = append(calls, call)
	}
	return calls
}

// fatal reports whether nothing more can come of the engine or of stdout.
func fatal(err error) bool {
	_, broken := errors.AsType[*moeflux.BrokenError](err)
	return broken || errors.Is(err, moeflux.ErrClosed) || errors.Is(err, process.ErrReaderGone)
}
