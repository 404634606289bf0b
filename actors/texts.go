package actors

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/moeflux/moeflux-actor/actors/recall"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/stages"
)

// Store has the state of the text so far written to Config.StateDir, from where Resume brings it
// back when the engine has forgotten it, and after a restart. It does not wait for that: the state
// is written when those before it are, if the sequence still stands there then or the text is
// remembered (Chunk.Remember). A state that cannot be written is left out, and the log says why.
// Without Config.StateDisk it does nothing.
func (s *Sequence) Store(ctx context.Context) error {
	if s.e.texts == nil {
		return nil
	}
	d, err := s.change(ctx, func(to stages.Caller) stages.Message { return &stages.DescribeSequence{Seq: s.id, Caller: to} })
	switch {
	case err != nil:
		return err
	case d.Poison != nil:
		return d.Poison
	case d.Pos == 0 || !allKnown(d.Tokens):
		return nil
	}
	end, err := s.e.exchange(ctx) // Close waits until it is written
	if err == nil {
		s.e.texts.Keep(recall.Text{Scope: s.options.Scope, Tokens: d.Tokens}, end)
	}
	return err
}

// openTexts opens the store of texts on disk. The bits of a state depend on more than the model.
func (e *Engine) openTexts(ctx context.Context, cfg Config) error {
	if cfg.StateDir == "" || cfg.StateDisk <= 0 {
		return nil
	}
	of, err := printOf(e.identity.own)
	if err != nil {
		return err
	}
	e.texts, err = recall.Open(ctx, recall.Config{
		Dir: cfg.StateDir, Limit: cfg.StateDisk, Identity: sha256.Sum256(append(of[:], e.info.Exactness...)), Shape: e.Shape(), Freeze: e.freeze, Log: e.log,
	})
	return err
}

// freeze returns the state of a text that the engine has, to be read.
func (e *Engine) freeze(ctx context.Context, t recall.Text) (recall.Frozen, error) {
	state, err := e.askState(ctx, func(to stages.Caller) stages.Message {
		return &stages.FreezeText{Tokens: t.Tokens, Scope: t.Scope, Caller: to}
	})
	if err != nil {
		return recall.Frozen{}, err
	}
	return recall.Frozen{
		Tokens: state.Tokens, Source: e.rowsOf(ctx, state), Release: func() { e.rt.GiveBack(&stages.ReleaseState{State: state.State}) },
	}, nil
}

// resume is Resume of a text that is declared to reach a number of positions. What memory has is
// taken unless the disk has at least a page more of the text: to fill a state takes longer than to
// read so few tokens.
func (s *Sequence) resume(ctx context.Context, text []int32, until int) (reused int, err error) {
	for {
		found := s.e.texts.Find(recall.Text{Scope: s.options.Scope, Tokens: text[:max(len(text)-1, 0)]})
		if found == nil {
			break
		}
		reused, err = s.resumeFrom(ctx, text, until, max(1, len(found.Tokens)-pageRows))
		if !errors.Is(err, stages.ErrLessKnown) {
			return reused, err
		}
		if err = s.bring(ctx, found); err == nil {
			break
		}
		if ctx.Err() != nil {
			return 0, err
		}
		s.e.log.Debug("a text is read again, its state on disk is not used", "positions", len(found.Tokens), "why", err)
		if !errors.As(err, new(*recall.LostError)) {
			break
		}
	}
	return s.resumeFrom(ctx, text, until, 0)
}

// bring makes the sequence's state one that was found on disk.
func (s *Sequence) bring(ctx context.Context, found *recall.Found) error {
	end, err := s.e.exchange(ctx)
	if err != nil {
		return err
	}
	_, err = bounded(ctx, s.e, func() (struct{}, error) {
		defer end()
		draft, err := s.e.askState(ctx, func(to stages.Caller) stages.Message {
			return &stages.DraftState{Seq: s.id, Positions: len(found.Tokens), Caller: to}
		})
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, s.adopt(ctx, draft, found.Tokens, func(t snapshot.Target) error { return s.e.texts.Fill(found, t) })
	})
	return err
}
