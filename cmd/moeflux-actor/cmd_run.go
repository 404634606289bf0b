package main

import (
	"context"
	"errors"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
)

type runCmd struct {
	textFlags

	constraintFlags    `group:"Constraint:"`
	flags.Conversation `group:"Conversation:"`
	sessionFlags       `group:"Session:"`
}

// defaultTokens and defaultChatTokens are the defaults of -n. An answer ends by itself, and may
// need room to reason.
const defaultTokens, defaultChatTokens = 256, 2048

// defaultMax returns the default of -n.
func (c *runCmd) defaultMax() int {
	if c.Chat {
		return defaultChatTokens
	}
	return defaultTokens
}

// Run generates text.
func (c *runCmd) Run(ctx context.Context, inv *process.Invocation) error {
	if err := c.checkText(c.defaultMax()); err != nil {
		return err
	}
	if err := c.checkSession(); err != nil {
		return err
	}
	within, err := c.bound()
	if err != nil {
		return err
	}
	if c.Chat {
		return c.runChat(ctx, inv, within)
	}
	if err := c.Conversation.Unused(); err != nil {
		return err
	}
	kept, err := c.openKept(ctx, inv, false)
	if err != nil {
		return err
	}
	defer kept.close()
	prompt, err := c.readPrompt(inv, kept.goesOn(), false)
	if err != nil {
		return err
	}
	return c.withModel(ctx, inv, func(s *flags.Opened) error { return c.continueText(ctx, inv, s, prompt, kept, within) })
}

// continueText continues the prompt, or the kept text followed by the prompt.
func (c *runCmd) continueText(ctx context.Context, inv *process.Invocation, s *flags.Opened, prompt string, kept *keptText, within *bound) error {
	g, err := c.generation(inv, s, c.defaultMax())
	if err != nil {
		return err
	}
	within.apply(g)
	g.request.Prompt, g.Show = prompt, c.plainText(inv)
	var save func(context.Context) error
	if kept == nil {
		g.request.NoReuse = true // there is nothing
	} else {
		if err := kept.attach(ctx, s); err != nil {
			return err
		}
		g.request.Session, save = kept.session, kept.save
	}
	err = c.once(ctx, inv, g, nil, save)
	switch {
	case !errors.Is(err, moeflux.ErrEmptyPrompt):
		return err
	case kept.goesOn():
		return process.Usagef("session %q has ended; give more text with -p TEXT, -f FILE, or - for stdin", kept.name)
	}
	return process.Usagef("the prompt is empty, and this model has no token that begins a text; give some text")
}
