package actors

import (
	"context"
	"errors"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// change asks something of the sequencer and notes where the sequence stands then. When ctx ends
// before the answer comes, what was asked is done all the same and noted when it is done; until
// then the sequence is busy, unless it was only to be kept, forgotten or described.
func (s *Sequence) change(ctx context.Context, message func(stages.Caller) stages.Message) (*stages.SequenceDone, error) {
	if s.isClosed() {
		return nil, stages.ErrClosed
	}
	a, err := s.e.request(ctx, message, func(a stages.Message) {
		if d := a.(*stages.SequenceDone); d.Kind != stages.Described {
			s.note(d)
		}
	})
	if err != nil {
		return nil, err
	}
	d := a.(*stages.SequenceDone)
	s.note(d)
	return d, d.Err
}

// note takes from an answer where the sequence stands.
func (s *Sequence) note(d *stages.SequenceDone) {
	switch d.Kind {
	case stages.Checkpointed, stages.Forgotten, stages.Capped:
		return // these change nothing; the sequence may have gone on since they were asked for
	}
	// Whoever keeps it busy, or has adopted the draft that is not there any more, gets a newer
	// answer.
	if errors.Is(d.Err, stages.ErrBusy) || errors.Is(d.Err, stages.ErrUnknownState) {
		return
	}
	s.mu.Lock()
	s.len, s.poison = d.Pos, d.Poison
	s.mu.Unlock()
}

// Reset empties the sequence, forgets its checkpoints, and heals it if it is poisoned.
func (s *Sequence) Reset(ctx context.Context) error {
	_, err := s.change(ctx, func(to stages.Caller) stages.Message { return &stages.ResetSequence{Seq: s.id, Caller: to} })
	return err
}

// Truncate keeps the first pos positions, 0 if pos is below, and forgets checkpoints behind them.
// At or behind the end nothing changes. A model with recurrent state can only be cut to 0:
// elsewhere the error is a *stages.CannotTruncateLinear, which says where Rewind would get to, and
// nothing is changed.
func (s *Sequence) Truncate(ctx context.Context, pos int) error {
	_, err := s.change(ctx, func(to stages.Caller) stages.Message {
		return &stages.TruncateSequence{Seq: s.id, Pos: pos, Caller: to}
	})
	return err
}

// Rewind takes the sequence back to the highest position up to pos that can be reached, if need be
// by a checkpoint or to 0, and returns it: the tokens from there on must be evaluated again. It
// heals a poisoned sequence.
func (s *Sequence) Rewind(ctx context.Context, pos int) (reached int, err error) {
	d, err := s.change(ctx, func(to stages.Caller) stages.Message {
		return &stages.TruncateSequence{Seq: s.id, Pos: pos, Nearest: true, Caller: to}
	})
	if err != nil {
		return 0, err
	}
	return d.Pos, nil
}

// Checkpoint keeps the present state under its position, which pos must be, in place of what was
// kept of that position. When it stands, older checkpoints go: what it takes the place of, the
// oldest beyond SetMaxCheckpoints, and what Config.CheckpointMemory has no room for any more. Each
// sequence's newest stays, and so does that at position 0. If there would be no room the error is a
// *stages.CheckpointMemoryError. After any error all checkpoints are as before.
func (s *Sequence) Checkpoint(ctx context.Context, pos int) error {
	_, err := s.change(ctx, func(to stages.Caller) stages.Message { return &stages.KeepCheckpoint{Seq: s.id, Pos: pos, Caller: to} })
	return err
}

// RestoreTo takes the sequence back to a checkpoint, which stays; those behind it are forgotten. It
// heals a poisoned sequence. Without such a checkpoint the error is a *stages.NoCheckpointError and
// nothing is changed.
func (s *Sequence) RestoreTo(ctx context.Context, pos int) error {
	_, err := s.change(ctx, func(to stages.Caller) stages.Message {
		return &stages.RestoreCheckpoint{Seq: s.id, Pos: pos, Caller: to}
	})
	return err
}

// SetMaxCheckpoints sets how many checkpoints the sequence keeps, where Config.Checkpoints says it
// for all. It takes effect at the next Checkpoint. The newest and that at position 0 count, but are
// kept in any case; with 0 there are no others.
func (s *Sequence) SetMaxCheckpoints(ctx context.Context, n int) error {
	_, err := s.change(ctx, func(to stages.Caller) stages.Message { return &stages.CapCheckpoints{Seq: s.id, Max: n, Caller: to} })
	return err
}

// ForgetCheckpoint gives a checkpoint back; that there is none is fine.
func (s *Sequence) ForgetCheckpoint(ctx context.Context, pos int) error {
	_, err := s.change(ctx, func(to stages.Caller) stages.Message {
		return &stages.ForgetCheckpoint{Seq: s.id, Pos: pos, Caller: to}
	})
	return err
}

// Resume makes the sequence hold as much of the beginning of a text as there is anywhere in the
// engine: in itself, in other sequences, in checkpoints, and in states that were remembered
// (Chunk.Remember). Memory is shared until somebody writes to it. It returns how many tokens that
// is, at most all but the last: evaluate the others. It heals a poisoned sequence, and forgets
// checkpoints of other texts. Where nothing fits, the sequence is empty then. With latent attention
// what is taken over has the bits of the form in which it was computed.
func (s *Sequence) Resume(ctx context.Context, text []int32) (reused int, err error) {
	d, err := s.change(ctx, func(to stages.Caller) stages.Message {
		return &stages.ResumeSequence{Seq: s.id, Tokens: slices.Clone(text), Caller: to}
	})
	if err != nil {
		return 0, err
	}
	return d.Pos, nil
}

// Fork makes another sequence that stands where this one does, without its checkpoints. They share
// memory until one of them writes to it.
func (s *Sequence) Fork(ctx context.Context) (*Sequence, error) {
	if s.isClosed() {
		return nil, stages.ErrClosed
	}
	return s.e.newSequence(ctx, s.id)
}

// Description is where a sequence stands.
type Description struct {
	PosMax      int     // positions evaluated: the next one
	Tokens      []int32 // [PosMax]; below 0 where a loaded state does not tell them
	Checkpoints []int   // positions, the one that was kept first before the others
}

// Describe asks the canonical state where the sequence stands, where Len tells what the last answer
// said.
func (s *Sequence) Describe(ctx context.Context) (Description, error) {
	d, err := s.change(ctx, func(to stages.Caller) stages.Message { return &stages.DescribeSequence{Seq: s.id, Caller: to} })
	if err != nil {
		return Description{}, err
	}
	return Description{PosMax: d.Pos, Tokens: slices.Clone(d.Tokens), Checkpoints: d.Checkpoints}, nil
}
