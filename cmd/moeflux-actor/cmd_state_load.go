package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/snapshot"
)

type stateLoadCmd struct {
	Path string `arg:"" name:"FILE" help:"The snapshot."`
	textFlags
	Accept   string `default:"sealed" placeholder:"KIND" help:"What to accept: sealed (a file with a seal, which proves that it is what was saved), plain (one without, as other programs write) or padded (plain, with anything after it). Default: sealed."`
	AnyModel bool   `help:"Accept a state of another model of the same shape, or of another quantisation. The text that follows may be meaningless."`
}

// Run loads a state and continues its text.
func (c *stateLoadCmd) Run(ctx context.Context, inv *process.Invocation) error {
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
	f, size, err := process.OpenRegular(c.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	return c.withModel(ctx, inv, func(s *flags.Opened) error {
		loaded, err := c.load(ctx, s, f, size, accept)
		if err != nil {
			return err
		}
		defer loaded.Close()
		return c.goOn(ctx, inv, s, loaded, prompt)
	})
}

func acceptOf(kind string) (snapshot.Accept, error) {
	kinds := []string{snapshot.Sealed: "sealed", snapshot.Plain: "plain", snapshot.Padded: "padded"}
	return snapshot.Accept(max(0, slices.Index(kinds, kind))), flags.OneOf("--accept", kind, kinds)
}

func (c *stateLoadCmd) load(ctx context.Context, s *flags.Opened, f *os.File, size int64, accept snapshot.Accept) (*moeflux.Session, error) {
	loaded, err := s.Model.LoadSession(ctx, f, size, moeflux.LoadOptions{Accept: accept, AnyModel: c.AnyModel})
	advice := ""
	switch {
	case err == nil:
		return loaded, nil
	case errors.Is(err, snapshot.ErrUnsealed), errors.Is(err, snapshot.ErrTrailing):
		advice = ", see --accept"
	case errors.Is(err, snapshot.ErrFingerprint):
		advice = ", give its model with --model or see --any-model"
	case errors.Is(err, snapshot.ErrTooLong):
		advice = ", allow more positions with --ctx"
	}
	return nil, fmt.Errorf("%s cannot be loaded%s: %w", c.Path, advice, err)
}

// goOn continues the text of a state that is loaded.
func (c *stateLoadCmd) goOn(ctx context.Context, inv *process.Invocation, s *flags.Opened, loaded *moeflux.Session, prompt string) error {
	g, err := c.generation(inv, s, defaultTokens)
	if err != nil {
		return err
	}
	positions := loaded.Positions()
	g.request.Session, g.request.Prompt, g.Show = loaded, prompt, c.plainText(inv)
	if err = c.once(ctx, inv, g, nil, nil); errors.Is(err, moeflux.ErrEmptyPrompt) {
		inv.Say("%s is a state of this model with %s", c.Path, figures.Counted(positions, "position"))
		return nil
	}
	return err
}
