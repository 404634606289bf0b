package main

import (
	"context"
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/eval"
)

type evalCmd struct {
	IDs    string `name:"ids" required:"" placeholder:"FILE" help:"A JSON file with one list of token ids; - for stdin."`
	Window int    `default:"512" placeholder:"W" help:"Ids per window; the state is emptied between windows. Default: 512."`
	JSON   bool   `name:"json" help:"Print one JSON object: nll, mean_nll, ppl, tokens, seconds."`

	engineFlags `group:"Engine:"`
}

// Run measures the loss.
func (c *evalCmd) Run(ctx context.Context, inv *invocation) error {
	if c.Window < 1 {
		return usagef("--window %d: must be 1 or more", c.Window)
	}
	if err := c.check(); err != nil {
		return err
	}
	data, err := readInput(inv, c.IDs)
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
	return c.withTokens(ctx, inv, func(s *session) error { return c.eval(ctx, inv, s, ids) })
}

func (c *evalCmd) eval(ctx context.Context, inv *invocation, s *session, ids []int32) error {
	if err := eval.CheckVocab(ids, s.engine.Model().VocabSize); err != nil {
		return fmt.Errorf("%s: %w", c.IDs, err)
	}
	bar, begin := newProgress(inv), inv.env.now()
	defer bar.clear()
	r, err := eval.Loss(ctx, s.engine, s.span, ids, c.Window, bar.of("eval"))
	if err != nil {
		return err
	}
	bar.clear()
	r.Seconds = inv.env.now().Sub(begin).Seconds()
	return inv.print(c.JSON, r, r.Text)
}
