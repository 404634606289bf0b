package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/tokenizer"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
	"github.com/moeflux/moeflux-actor/tokenizer/jinja"
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
	template, err := chat.Load(dir, chat.Options{Now: inv.env.now})
	if _, none := errors.AsType[*chat.NoTemplateError](err); none {
		return fmt.Errorf("this model cannot chat; leave out --chat to continue a text: %w", err)
	}
	if err != nil {
		return fmt.Errorf("the chat template cannot be used: %w", err)
	}
	return c.withSession(ctx, inv, func(s *session, tok *tokenizer.Tokenizer) error {
		seq, err := s.engine.NewSequence(ctx)
		if err != nil {
			return err
		}
		defer seq.Close()
		first, err := c.generation(inv, s, seq, tok, c.defaultMax())
		if err != nil {
			return err
		}
		v := &conversation{
			seq: seq, tok: tok, template: template, args: args, system: system, ends: turnEnds(template, tok),
			begin: func() *generation { g := *first; return &g },
			show:  func(prompt string) *answerText { return c.answerText(inv, prompt) },
		}
		if err := v.takeUp(ctx, s, kept, c.System == nil); err != nil {
			return err
		}
		if converses {
			return converse(ctx, inv, v)
		}
		return c.answerOnce(ctx, inv, v, message)
	})
}

// answerText returns the display of an answer to a prompt.
func (c *runCmd) answerText(inv *invocation, prompt string) *answerText {
	a := &answerText{plain: plainText{terminal: inv.stdoutTerminal}, reasoning: chat.NewReasoning(prompt)}
	a.dim = inv.stdoutTerminal && !inv.env.dumb && !inv.env.noColour
	if !c.JSON {
		a.plain.out = inv.stdout
	}
	return a
}

// answerOnce answers one message and prints what run prints.
func (c *runCmd) answerOnce(ctx context.Context, inv *invocation, v *conversation, message string) error {
	v.messages = append(v.messages, chat.Message{Role: chat.User, Content: message})
	g, prompt, err := v.next()
	if err != nil {
		return err
	}
	shown := v.show(prompt)
	g.show = shown
	var save func(context.Context) error
	if v.keep != nil {
		save = func(ctx context.Context) error {
			if len(g.newIDs) == 0 && g.halt() {
				inv.say("the message was not answered; the session is as it was")
				return nil
			}
			v.messages = append(v.messages, shown.message())
			return v.keep(ctx)
		}
	}
	return c.once(ctx, inv, g, func(r *runResult) {
		thought, said := shown.thought.String(), shown.said.String()
		r.Prompt, r.Reasoning, r.Content = &prompt, &thought, &said
	}, save)
}

// message returns the answer that was shown.
func (a *answerText) message() chat.Message {
	return chat.Message{Role: chat.Assistant, Content: a.said.String(), ReasoningContent: a.thought.String()}
}

// turnEnds returns the token that ends the model's turn in the template, if it is a special one.
func turnEnds(template *chat.Template, tok *tokenizer.Tokenizer) []int32 {
	ids, err := tok.Encode(template.TurnEnd(), false)
	if err != nil || len(ids) == 0 || !tok.IsSpecial(ids[0]) {
		return nil
	}
	return ids[:1]
}

// conversation is messages and the sequence that has read them.
type conversation struct {
	seq      *actors.Sequence
	tok      *tokenizer.Tokenizer
	template *chat.Template
	args     *jinja.Dict
	ends     []int32
	begin    func() *generation
	show     func(prompt string) *answerText

	system   string         // "" for none
	messages []chat.Message // the system message is not among them

	keep  func(context.Context) error                  // saves it; nil if it is not kept
	prime func(context.Context, []int32) (bool, error) // see generation; nil if it is not kept

	answers uint64      // given so far
	last    *runFigures // of the last answer; nil before the first
}

// all returns the messages with that of the system.
func (v *conversation) all() []chat.Message {
	if v.system == "" {
		return v.messages
	}
	return append([]chat.Message{{Role: chat.System, Content: v.system}}, v.messages...)
}

// takeUp goes on with a conversation that is kept, and keeps this one. The system message is the
// kept one unless another was given.
func (v *conversation) takeUp(ctx context.Context, s *session, kept *keptText, keptSystem bool) error {
	if kept == nil {
		return nil
	}
	if err := kept.load(ctx, s, v.seq); err != nil {
		return err
	}
	v.messages = kept.note.Messages
	if keptSystem {
		v.system = kept.note.System
	}
	v.prime = kept.prime(s, v.seq)
	v.keep = func(ctx context.Context) error {
		if err := v.settle(ctx); err != nil {
			return err
		}
		return kept.save(ctx, s, v.seq, keptNote{System: v.system, Messages: v.messages})
	}
	if kept.goesOn() {
		s.say("session %q goes on: %d messages, %d positions", kept.name, len(v.all()), v.seq.Len())
	}
	return nil
}

// settle takes the sequence back to where the next turn can go on from. Many templates write an
// answer otherwise once it is an earlier one, without its reasoning: what the sequence has of it
// then is of no use, and where it has recurrent state nothing before it is, either.
func (v *conversation) settle(ctx context.Context) error {
	next := append(slices.Clone(v.all()), chat.Message{Role: chat.User, Content: "?"})
	ids, _, err := v.encode(next)
	if err != nil {
		return nil // a template that refuses this may take what is really said
	}
	_, err = v.seq.Resume(ctx, ids)
	return err
}

// encode returns messages as the template writes them, as tokens and as text.
func (v *conversation) encode(messages []chat.Message) ([]int32, string, error) {
	prompt, err := v.template.Render(jinja.Chat{Messages: chat.Values(messages), AddGenerationPrompt: true, Extra: v.args})
	if refusal, ok := errors.AsType[*jinja.Error](err); ok && refusal.Kind == jinja.KindTemplate {
		return nil, "", fmt.Errorf("the model's chat template refuses the conversation: %s", refusal.Msg)
	}
	if err != nil {
		return nil, "", fmt.Errorf("the model's chat template fails: %w", err)
	}
	ids, err := v.tok.Encode(prompt, false)
	if err != nil {
		return nil, "", fmt.Errorf("the conversation cannot be encoded: %w", err)
	}
	if len(ids) == 0 {
		return nil, "", errors.New("the model's chat template makes nothing of the conversation; give a message")
	}
	return ids, prompt, nil
}

// next returns the generation of the next answer, whose display is to be set, and its prompt. What
// the engine knows of the prompt's beginning is not read again.
func (v *conversation) next() (*generation, string, error) {
	ids, prompt, err := v.encode(v.all())
	if err != nil {
		return nil, "", err
	}
	g := v.begin()
	g.ids, g.resume, g.prime = ids, true, v.prime
	g.ends = v.ends
	g.sampling.Seed += v.answers // so that trying again gives another answer
	v.answers++
	return g, prompt, nil
}

// answer adds the assistant's message to the conversation, as far as it came before halt said so.
// With an error, or if nothing came, nothing is added.
func (v *conversation) answer(ctx context.Context, halt func() bool) (actors.StopReason, error) {
	g, prompt, err := v.next()
	if err != nil {
		return "", err
	}
	shown := v.show(prompt)
	g.show, g.halt = shown, halt
	g.clock.processStart = g.clock.now() // the person waits from here on
	r, err := g.run(ctx)
	// The part that came is shown even after an error.
	if endErr := g.end(r); err == nil {
		err = endErr
	}
	if err != nil {
		return "", err
	}
	if len(g.newIDs) > 0 || r.StopReason != stopInterrupted {
		v.messages = append(v.messages, shown.message())
	}
	v.last, err = runStats(context.WithoutCancel(ctx), g)
	return r.StopReason, err
}
