package main

import (
	"context"
	"errors"

	moeflux "github.com/moeflux/moeflux-actor"
)

type runCmd struct {
	textFlags

	constraintFlags `group:"Constraint:"`
	chatFlags       `group:"Conversation:"`
	sessionFlags    `group:"Session:"`
}

// Help is shown by --help.
func (runCmd) Help() string {
	return `Example:

    moeflux-actor run -p "package main" -n 100
    moeflux-actor run -f draft.go --temperature 0.8 --top-p 0.95 --seed 7 --stop $'\nfunc '
    moeflux-actor run -p "const size = " --regex "[0-9]{1,4}"
    moeflux-actor run --model DIR --chat -p "What is a monad?" --system "Be brief."
    moeflux-actor run --model DIR --chat
    moeflux-actor run --model DIR --chat --session monads

The text is streamed to stdout, without the prompt; the last line on stderr gives the speed. Without --model the demo model
runs, which writes Go-like text. Ctrl-C ends the text, and the command exits with 130.

Sampling values that are not given come from the model's generation_config.json; a model without one is greedy, and so is
--temperature 0. --json shows which values were used and where each comes from (stats.sampling). The seed is random unless
it is given; the figures name it, and with --seed the same text comes again.

--regex and --grammar bound the text: the model chooses only among what they allow, and ends where they let it. -n may cut it
short; then a line on stderr says so, and with --json constraint.complete is false. With --chat they bound each answer, but not
what the model thinks before it.

With --session the text is saved under a name when it ends. The next run with that name continues it without reading it again,
after the new prompt if there is one. Ctrl-C saves what there is so far; a second Ctrl-C ends at once. Two runs cannot use one
session at the same time.

With --chat the prompt is a user's message in the model's chat template, and the text is the answer. On a terminal, without a
prompt, --chat starts a conversation: Ctrl-C stops an answer, Ctrl-D ends, /help lists the commands.`
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
func (c *runCmd) Run(ctx context.Context, inv *invocation) error {
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
	if err := c.chatFlags.unused(); err != nil {
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
	return c.withModel(ctx, inv, func(s *session) error { return c.continueText(ctx, inv, s, prompt, kept, within) })
}

// continueText continues the prompt, or the kept text followed by the prompt.
func (c *runCmd) continueText(ctx context.Context, inv *invocation, s *session, prompt string, kept *keptText, within *bound) error {
	g, err := c.generation(inv, s, c.defaultMax())
	if err != nil {
		return err
	}
	within.apply(g)
	g.request.Prompt, g.show = prompt, c.plainText(inv)
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
		return usagef("session %q has ended; give more text with -p TEXT, -f FILE, or - for stdin", kept.name)
	}
	return usagef("the prompt is empty, and this model has no token that begins a text; give some text")
}
