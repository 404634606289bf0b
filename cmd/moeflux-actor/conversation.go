package main

import (
	"context"
	"errors"
	"fmt"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// runChat answers one message, or converses if there is none and a person sits there.
func (c *runCmd) runChat(ctx context.Context, inv *invocation) error {
	kept, err := c.openKept(ctx, inv, true)
	if err != nil {
		return err
	}
	defer kept.close()
	system, err := c.system()
	if err != nil {
		return err
	}
	args, err := c.templateArgs()
	if err != nil {
		return err
	}
	converses := !c.hasPrompt() && inv.stdinTerminal
	if converses && c.JSON {
		return usagef("--json prints one answer: give a message with -p TEXT, -f FILE, or - for stdin")
	}
	var message string
	if !converses {
		if message, err = c.readPrompt(inv, false, true); err != nil {
			return err
		}
	}
	dir, err := modelDir(ctx, inv, c.Model, c.CacheDir)
	if err != nil {
		return err
	}
	if _, err := chat.Load(dir, chat.Options{}); err != nil { // opening the model may take long
		return cannotChat(err)
	}
	return c.withModel(ctx, inv, func(s *session) error {
		first, err := c.generation(inv, s, c.defaultMax())
		if err != nil {
			return err
		}
		first.chat, first.request.TemplateArgs = true, args
		v := &conversation{
			session: new(moeflux.Session), system: system,
			begin: func() *generation { g := *first; return &g },
			show:  func() *answerText { return c.answerText(inv) },
		}
		if err := v.takeUp(ctx, s, kept, c.System == nil); err != nil {
			return err
		}
		defer v.session.Close()
		if converses {
			return converse(ctx, inv, v)
		}
		return c.answerOnce(ctx, inv, v, message)
	})
}

// cannotChat says why a model's chat template is of no use.
func cannotChat(err error) error {
	if errors.As(err, new(*moeflux.NoTemplateError)) {
		return fmt.Errorf("this model cannot chat; leave out --chat to continue a text: %w", err)
	}
	return fmt.Errorf("the chat template cannot be used: %w", err)
}

// answerText returns the display of an answer.
func (c *runCmd) answerText(inv *invocation) *answerText {
	a := &answerText{plain: plainText{terminal: inv.stdoutTerminal}}
	a.dim = inv.stdoutTerminal && !inv.env.dumb && !inv.env.noColour
	if !c.JSON {
		a.plain.out = inv.stdout
	}
	return a
}

// answerOnce answers one message and prints what run prints.
func (c *runCmd) answerOnce(ctx context.Context, inv *invocation, v *conversation, message string) error {
	v.messages = append(v.messages, moeflux.Message{Role: moeflux.User, Content: message})
	g, err := v.next()
	if err != nil {
		return err
	}
	shown := v.show()
	g.show = shown
	var save func(context.Context) error
	if v.keep != nil {
		save = func(ctx context.Context) error {
			if !v.answered() {
				inv.say("the message was not answered; the session is as it was")
				return nil
			}
			return v.keep(ctx)
		}
	}
	return c.once(ctx, inv, g, func(r *runResult) {
		thought, said := shown.thought.String(), shown.said.String()
		r.Prompt, r.Reasoning, r.Content = &g.prompt.Text, &thought, &said
	}, save)
}

// conversation is messages and the session that has read them.
type conversation struct {
	session *moeflux.Session
	begin   func() *generation
	show    func() *answerText

	system   string            // "" for none
	messages []moeflux.Message // the system message is not among them

	keep func(context.Context) error // saves it; nil if it is not kept

	answers uint64      // given so far
	last    *runFigures // of the last answer; nil before the first
}

// all returns the messages with that of the system.
func (v *conversation) all() []moeflux.Message {
	if v.system == "" {
		return v.messages
	}
	return append([]moeflux.Message{{Role: moeflux.System, Content: v.system}}, v.messages...)
}

// takeUp goes on with a conversation that is kept, and keeps this one. The system message is the
// kept one unless another was given.
func (v *conversation) takeUp(ctx context.Context, s *session, kept *keptText, keptSystem bool) error {
	if kept == nil {
		return nil
	}
	v.session = kept.session
	if err := kept.attach(ctx, s); err != nil {
		return err
	}
	messages := v.session.Messages()
	if len(messages) > 0 && messages[0].Role == moeflux.System {
		if keptSystem {
			v.system = messages[0].Content
		}
		messages = messages[1:]
	}
	v.messages, v.keep = messages, kept.save
	if kept.goesOn() {
		s.say("session %q goes on: %d messages, %d positions", kept.name, len(v.all()), v.session.Positions())
	}
	return nil
}

// next returns the generation of the next answer, whose display is to be set. What the engine knows
// of the prompt's beginning is not read again.
func (v *conversation) next() (*generation, error) {
	if err := v.session.SetMessages(v.all()); err != nil {
		return nil, err
	}
	g := v.begin()
	g.request.Session = v.session
	if g.request.Sampling.Seed != nil {
		g.request.Sampling.Seed = new(*g.request.Sampling.Seed + v.answers) // so that trying again gives another answer
	}
	v.answers++
	return g, nil
}

// answered takes the answer over, if the session has one.
func (v *conversation) answered() bool {
	now := v.session.Messages()
	if len(now) <= len(v.all()) {
		return false
	}
	v.messages = append(v.messages, now[len(now)-1])
	return true
}

// answer adds the assistant's message to the conversation, as far as it came before halt said so.
// With an error, or if nothing came, nothing is added.
func (v *conversation) answer(ctx context.Context, halt func() bool) (moeflux.StopReason, error) {
	g, err := v.next()
	if err != nil {
		return "", err
	}
	g.show, g.request.Interrupted = v.show(), halt
	g.clock.processStart = g.clock.now() // the person waits from here on
	r, err := g.run(ctx)
	if err != nil {
		return "", err
	}
	v.answered()
	v.last, err = runStats(context.WithoutCancel(ctx), g)
	return r.StopReason, err
}
