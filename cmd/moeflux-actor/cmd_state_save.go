package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/snapshot"
)

type stateSaveCmd struct {
	Path string `arg:"" name:"FILE" help:"The snapshot to write. An existing file is replaced once the new one is complete."`
	promptFlags
	Plain   bool `help:"Leave the seal out, as other programs do. Nothing then identifies the model or the tokens, or reveals damage."`
	Version int  `placeholder:"N" help:"The version of the format: 1, or 2, which has latent attention too. Default: 1 where that will do, since more programs read it."`
	JSON    bool `name:"json" help:"Print one JSON object: file, positions, bytes."`

	flags.Engine `group:"Engine:"`
}

// stateSaved is what state save prints.
type stateSaved struct {
	File      string `json:"file"`
	Positions int    `json:"positions"`
	Bytes     int64  `json:"bytes"`
}

// Run saves a state.
func (c *stateSaveCmd) Run(ctx context.Context, inv *process.Invocation) error {
	if err := c.Check(); err != nil {
		return err
	}
	if c.Version < 0 || c.Version > snapshot.Version2 {
		return process.Usagef("--version %d is unknown; available: %d, %d", c.Version, snapshot.Version1, snapshot.Version2)
	}
	if err := process.CheckOutput(c.Path); err != nil {
		return err
	}
	prompt, err := c.readPrompt(inv, false, false)
	if err != nil {
		return err
	}
	return c.WithModel(ctx, inv, func(s *flags.Opened) error { return c.save(ctx, inv, s, prompt) })
}

func (c *stateSaveCmd) save(ctx context.Context, inv *process.Invocation, s *flags.Opened, prompt string) error {
	ids, err := s.Model.Tokenizer().Encode(prompt, true)
	switch {
	case err != nil:
		return fmt.Errorf("the text cannot be encoded: %w", err)
	case len(ids) == 0:
		return process.Usagef("the text is empty and leaves no state; give some text")
	}
	seq, err := s.Engine.NewSequence(ctx)
	if err != nil {
		return err
	}
	defer seq.Close()
	if _, err := seq.EvalChunk(ctx, actors.Chunk{Tokens: ids, Logits: actors.NoLogits}); err != nil {
		return err
	}
	r := stateSaved{File: c.Path, Positions: seq.Len()}
	err = durable.Replace(c.Path, durable.Shared, func(w io.Writer) (err error) {
		r.Bytes, err = seq.Save(ctx, w, actors.SaveOptions{Plain: c.Plain, Version: c.Version})
		return err
	})
	if errors.Is(err, snapshot.ErrUnsupported) && c.Version == snapshot.Version1 {
		return fmt.Errorf("the state is not saved to %s: version 1 of the format does not know latent attention, which this model has; leave --version out", c.Path)
	}
	if err != nil {
		return fmt.Errorf("the state is not saved to %s: %w", c.Path, err)
	}
	if c.JSON {
		return process.WriteJSON(inv.Stdout, r)
	}
	inv.Say("%s in %s, %s", figures.Counted(r.Positions, "position"), r.File, figures.Bytes(r.Bytes))
	return nil
}
