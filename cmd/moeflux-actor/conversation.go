package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/stages/sample"
	"github.com/moeflux/moeflux-actor/tokenizer"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
	"github.com/moeflux/moeflux-actor/tokenizer/jinja"
)

// runChat answers one message, or converses if there is none and a person sits there.
func (c *runCmd) runChat(ctx context.Context, inv *invocation, options sample.Options) error {
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
		if message, err = c.readPrompt(inv); err != nil {
			return err
		}
	}
	dir, err := modelDir(ctx, inv, c.Model, c.CacheDir)
	if err != nil {
		return err
	}
	template, err := chat.Load(dir, chat.Options{Now: inv.env.now})
	if _, none := errors.AsType[*chat.NoTemplateError](err); none {
		return fmt.Errorf("--chat is not possible, leave it out to continue a text: %w", err)
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
		v := &conversation{
			seq: seq, tok: tok, template: template, args: args, system: system, ends: turnEnds(template, tok),
			begin: func() *generation { return c.generation(inv, s, seq, tok, options) },
			show:  func(prompt string) *answerText { return c.answerText(inv, prompt) },
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
	v.messages = []chat.Message{{Role: chat.User, Content: message}}
	g, prompt, err := v.next(ctx)
	if err != nil {
		return err
	}
	shown := v.show(prompt)
	g.show = shown
	return c.once(ctx, inv, g, func(r *runResult) {
		thought, said := shown.thought.String(), shown.said.String()
		r.Prompt, r.Reasoning, r.Content = &prompt, &thought, &said
	})
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

	seen    []int32     // tokens that the sequence holds
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

// next returns the generation of the next answer, whose display is to be set, and its prompt. The sequence keeps what it holds
// if the prompt begins with exactly those tokens, and is emptied otherwise.
func (v *conversation) next(ctx context.Context) (*generation, string, error) {
	prompt, err := v.template.Render(jinja.Chat{Messages: chat.Values(v.all()), AddGenerationPrompt: true, Extra: v.args})
	if refusal, ok := errors.AsType[*jinja.Error](err); ok && refusal.Kind == jinja.KindTemplate {
		return nil, "", fmt.Errorf("the model's chat template refuses the conversation: %s", refusal.Msg)
	}
	if err != nil {
		return nil, "", fmt.Errorf("the model's chat template fails: %w", err)
	}
	g := v.begin()
	if g.ids, err = v.tok.Encode(prompt, false); err != nil {
		return nil, "", fmt.Errorf("the conversation cannot be encoded: %w", err)
	}
	if len(g.ids) == 0 {
		return nil, "", errors.New("the model's chat template makes nothing of the conversation; give a message")
	}
	if len(v.seen) < len(g.ids) && slices.Equal(v.seen, g.ids[:len(v.seen)]) && v.seq.Err() == nil {
		g.reused = len(v.seen)
	} else if err := v.forget(ctx); err != nil {
		return nil, "", err
	}
	g.ends = v.ends
	g.sampling.Seed += v.answers // an answer that is tried again shall be another one
	v.answers++
	return g, prompt, nil
}

// forget empties the sequence.
func (v *conversation) forget(ctx context.Context) error {
	if v.seen = nil; v.seq.Len() == 0 && v.seq.Err() == nil {
		return nil
	}
	return v.seq.Reset(ctx)
}

// answer adds the assistant's message to the conversation, as far as it came before halt said so. With an error, or if
// nothing came, nothing is added.
func (v *conversation) answer(ctx context.Context, halt func() bool) (actors.StopReason, error) {
	g, prompt, err := v.next(ctx)
	if err != nil {
		return "", err
	}
	shown := v.show(prompt)
	g.show, g.halt = shown, halt
	g.clock.processStart = g.clock.now() // the person waits from here on
	r, err := g.run(ctx)
	read := append(slices.Clone(g.ids), g.newIDs...)
	v.seen = read[:min(v.seq.Len(), len(read))]
	// What came is shown whatever happened.
	if endErr := g.end(r); err == nil {
		err = endErr
	}
	if err != nil {
		return "", err
	}
	if len(g.newIDs) > 0 || r.StopReason != stopInterrupted {
		v.messages = append(v.messages, chat.Message{Role: chat.Assistant, Content: shown.said.String(), ReasoningContent: shown.thought.String()})
	}
	v.last, err = runStats(context.WithoutCancel(ctx), g)
	return r.StopReason, err
}
