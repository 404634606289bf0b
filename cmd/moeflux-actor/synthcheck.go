package main

import (
	"context"
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/eval"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/io/synth"
)

// checkModel feeds a model its chain and holds what it computes against what it must.
func (c *synthCmd) checkModel(ctx context.Context, inv *process.Invocation) error {
	m, err := synth.Load(c.Check)
	if err != nil {
		return err
	}
	c.Model = c.Check
	var r *eval.Differences
	err = c.WithTokens(ctx, inv, func(s *flags.Opened) error {
		r, err = c.feed(ctx, inv, s, m)
		return err
	})
	if err == nil {
		err = inv.Print(c.JSON, r, r.Text)
	}
	if err == nil && r.Differences > 0 {
		err = fmt.Errorf("%s: %d differences in %d tokens: the engine computes wrong, or the files are damaged", c.Check, r.Differences, r.Tokens)
	}
	return err
}

// feed feeds the chain and times it.
func (c *synthCmd) feed(ctx context.Context, inv *process.Invocation, s *flags.Opened, m *synth.Model) (*eval.Differences, error) {
	if n := s.Engine.Info().Context; c.Tokens > n {
		return nil, process.Usagef("--tokens %d, but a sequence has %d positions", c.Tokens, n)
	}
	begin, bar := inv.Env.Now(), process.NewProgress(inv)
	defer bar.Clear()
	r, err := eval.Chain(ctx, s.Engine, m, c.Tokens, bar.Of("checking"))
	if err == nil {
		r.Seconds = inv.Env.Now().Sub(begin).Seconds()
	}
	return r, err
}
