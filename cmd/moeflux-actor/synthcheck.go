package main

import (
	"context"
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/eval"
	"github.com/moeflux/moeflux-actor/io/synth"
)

// checkModel feeds a model its chain and holds what it computes against what it must.
func (c *synthCmd) checkModel(ctx context.Context, inv *invocation) error {
	m, err := synth.Load(c.Check)
	if err != nil {
		return err
	}
	c.Model = c.Check
	var r *eval.Differences
	err = c.withTokens(ctx, inv, func(s *session) error {
		r, err = c.feed(ctx, inv, s, m)
		return err
	})
	if err == nil {
		err = inv.print(c.JSON, r, r.Text)
	}
	if err == nil && r.Differences > 0 {
		err = fmt.Errorf("%s: %d differences in %d tokens: the engine computes wrong, or the files are damaged", c.Check, r.Differences, r.Tokens)
	}
	return err
}

// feed feeds the chain and times it.
func (c *synthCmd) feed(ctx context.Context, inv *invocation, s *session, m *synth.Model) (*eval.Differences, error) {
	if n := s.engine.Info().Context; c.Tokens > n {
		return nil, usagef("--tokens %d, but a sequence has %d positions", c.Tokens, n)
	}
	begin, bar := inv.env.now(), newProgress(inv)
	defer bar.clear()
	r, err := eval.Chain(ctx, s.engine, m, c.Tokens, bar.of("checking"))
	if err == nil {
		r.Seconds = inv.env.now().Sub(begin).Seconds()
	}
	return r, err
}
