package main

import (
	"context"
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/eval"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
)

type evalCmd struct {
	IDs    string `name:"ids" required:"" placeholder:"FILE" help:"A JSON file with one list of token ids; - for stdin."`
	Window int    `default:"512" placeholder:"W" help:"Ids per window; the state is emptied between windows. Default: 512."`
	JSON   bool   `name:"json" help:"Print one JSON object: nll, mean_nll, ppl, tokens, seconds."`

	flags.Engine `group:"Engine:"`
}

// Run measures the loss.
func (c *evalCmd) Run(ctx context.Context, inv *process.Invocation) error {
	if c.Window < 1 {
		return process.Usagef("--window %d: must be 1 or more", c.Window)
	}
	if err := c.Check(); err != nil {
		return err
	}
	data, err := process.ReadInput(inv, c.IDs)
	if err != nil {
		return fmt.Errorf("the ids cannot be read: %w", err)
	}
	ids, err := eval.ParseIDs(data)
	if err == nil && len(ids) < 2 {
		err = fmt.Errorf("%d ids leave nothing to predict; at least 2 are needed", len(ids))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.IDs, err)
	}
	return c.WithTokens(ctx, inv, func(s *flags.Opened) error { return c.eval(ctx, inv, s, ids) })
}

func (c *evalCmd) eval(ctx context.Context, inv *process.Invocation, s *flags.Opened, ids []int32) error {
	if err := eval.CheckVocab(ids, s.Engine.Model().VocabSize); err != nil {
		return fmt.Errorf("%s: %w", c.IDs, err)
	}
	bar, begin := process.NewProgress(inv), inv.Env.Now()
	defer bar.Clear()
	r, err := eval.Loss(ctx, s.Engine, s.Span, ids, c.Window, bar.Of("eval"))
	if err != nil {
		return err
	}
	bar.Clear()
	r.Seconds = inv.Env.Now().Sub(begin).Seconds()
	return inv.Print(c.JSON, r, r.Text)
}
