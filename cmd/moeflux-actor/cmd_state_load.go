package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

type stateLoadCmd struct {
	Path string `arg:"" name:"FILE" help:"The snapshot."`
	textFlags
	Accept   string `default:"sealed" placeholder:"KIND" help:"What to accept: sealed (a file with a seal, which proves that it is what was saved), plain (one without, as other programs write) or padded (plain, with anything after it). Default: sealed."`
	AnyModel bool   `help:"Accept a state of another model of the same shape, or of another quantisation. The text that follows may be meaningless."`
}

// Help is shown by --help.
func (stateLoadCmd) Help() string {
	return `Example:

    moeflux-actor state load rules.snapshot -p "And so" -n 100
    moeflux-actor state load rules.snapshot

The text of the state continues with the prompt as if run had read both, but without reading the state's text again. Without a
prompt the command only loads the state, which checks the whole file.`
}

// Run loads a state and continues its text.
func (c *stateLoadCmd) Run(ctx context.Context, inv *invocation) error {
	if err := c.checkText(defaultTokens); err != nil {
		return err
	}
	accept, err := acceptOf(c.Accept)
	if err != nil {
		return err
	}
	prompt, err := c.readPrompt(inv, true, false)
	if err != nil {
		return err
	}
	f, err := os.Open(c.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	return c.withSession(ctx, inv, func(s *session, tok *tokenizer.Tokenizer) error {
		seq, err := s.engine.NewSequence(ctx)
		if err != nil {
			return err
		}
		defer seq.Close()
		if err := c.load(ctx, seq, f, accept); err != nil {
			return err
		}
		return c.goOn(ctx, inv, s, seq, tok, prompt)
	})
}

func acceptOf(kind string) (snapshot.Accept, error) {
	kinds := []string{snapshot.Sealed: "sealed", snapshot.Plain: "plain", snapshot.Padded: "padded"}
	return snapshot.Accept(max(0, slices.Index(kinds, kind))), oneOf("--accept", kind, kinds...)
}

func (c *stateLoadCmd) load(ctx context.Context, seq *actors.Sequence, f *os.File, accept snapshot.Accept) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", c.Path)
	}
	err = seq.Load(ctx, f, info.Size(), actors.LoadOptions{Accept: accept, AnyModel: c.AnyModel, InPlace: true})
	advice := ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, snapshot.ErrUnsealed), errors.Is(err, snapshot.ErrTrailing):
		advice = ", see --accept"
	case errors.Is(err, snapshot.ErrFingerprint):
		advice = ", give its model with --model or see --any-model"
	case errors.Is(err, snapshot.ErrTooLong):
		advice = ", allow more positions with --ctx"
	}
	return fmt.Errorf("%s cannot be loaded%s: %w", c.Path, advice, err)
}

// goOn continues the text of a state that is loaded.
func (c *stateLoadCmd) goOn(ctx context.Context, inv *invocation, s *session, seq *actors.Sequence, tok *tokenizer.Tokenizer, prompt string) error {
	more, err := tok.Encode(prompt, seq.Len() == 0)
	if err != nil {
		return fmt.Errorf("the prompt cannot be encoded: %w", err)
	}
	if len(more) == 0 {
		inv.say("%s is a state of this model with %s", c.Path, counted(int64(seq.Len()), "position"))
		return nil
	}
	d, err := seq.Describe(ctx)
	if err != nil {
		return err
	}
	g, err := c.generation(inv, s, seq, tok, defaultTokens)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(d.Tokens, func(id int32) bool { return id < 0 }) {
		g.ids, g.reused = d.Tokens, len(d.Tokens)
	} // else the file tells no tokens, and nobody knows the text before the prompt
	g.ids = slices.Concat(g.ids, more)
	g.show = &plainText{terminal: inv.stdoutTerminal}
	if !c.JSON {
		g.show = &plainText{out: inv.stdout, terminal: inv.stdoutTerminal}
	}
	return c.once(ctx, inv, g, nil, nil)
}
