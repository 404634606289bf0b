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
	if s.isClosed() || s.e.rt.Closed() {
		return nil, stages.ErrClosed
	}
	return s.changeOn(ctx, message)
}

// changeOn is change within a call under way, which goes on while the engine is being closed.
func (s *Sequence) changeOn(ctx context.Context, message func(stages.Caller) stages.Message) (*stages.SequenceDone, error) {
	a, err := s.e.rt.Ask(ctx, stages.Sequencer, message, func(a stages.Message) {
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

// Truncate keeps the first pos positions, none if pos is negative, and forgets checkpoints after
// them. If pos is at or after the end, nothing changes. With recurrent state a sequence can only be
// cut to 0. Where layers have a window, and nothing else is recurrent, it can be cut as long as all
// is kept that the next position attends to: for a page of positions or more of what it has read by
// itself, and not before where its state was restored, loaded, forked or parked. For any other
// position the error is a *stages.CannotTruncateLinear, which says where Rewind would get to, and
// nothing changes.
func (s *Sequence) Truncate(ctx context.Context, pos int) error {
	_, err := s.change(ctx, func(to stages.Caller) stages.Message {
		return &stages.TruncateSequence{Seq: s.id, Pos: pos, Caller: to}
	})
	return err
}

// Rewind takes the sequence back to the highest position up to pos that it can reach, if necessary
// by a checkpoint or to 0, and returns that position: the tokens from there on must be evaluated
// again. It heals a poisoned sequence.
func (s *Sequence) Rewind(ctx context.Context, pos int) (reached int, err error) {
	d, err := s.change(ctx, func(to stages.Caller) stages.Message {
		return &stages.TruncateSequence{Seq: s.id, Pos: pos, Nearest: true, Caller: to}
	})
	if err != nil {
		return 0, err
	}
	return d.Pos, nil
}

// Checkpoint keeps the present state under its position, which pos must be, and replaces the
// checkpoint at that position. Once the new one stands, others go: the one it replaces, the oldest
// beyond SetMaxCheckpoints, and what no longer fits in Config.CheckpointMemory. Each sequence's
// newest checkpoint stays, and so does the one at position 0. If even then there is no room, the
// error is a *stages.CheckpointMemoryError. After any error all checkpoints are as before.
func (s *Sequence) Checkpoint(ctx context.Context, pos int) error {
	_, err := s.change(ctx, func(to stages.Caller) stages.Message { return &stages.KeepCheckpoint{Seq: s.id, Pos: pos, Caller: to} })
	return err
}

// RestoreTo takes the sequence back to a checkpoint, which stays; checkpoints after it are
// forgotten. It heals a poisoned sequence. If there is no such checkpoint the error is a
// *stages.NoCheckpointError and nothing changes.
func (s *Sequence) RestoreTo(ctx context.Context, pos int) error {
	_, err := s.change(ctx, func(to stages.Caller) stages.Message {
		return &stages.RestoreCheckpoint{Seq: s.id, Pos: pos, Caller: to}
	})
	return err
}

// SetMaxCheckpoints sets how many checkpoints the sequence keeps; Config.Checkpoints is the default
// for all sequences. It takes effect at the next Checkpoint. The newest and the one at position 0
// count, but are always kept; with 0 there are no others.
func (s *Sequence) SetMaxCheckpoints(ctx context.Context, n int) error {
	_, err := s.change(ctx, func(to stages.Caller) stages.Message { return &stages.CapCheckpoints{Seq: s.id, Max: n, Caller: to} })
	return err
}

// ForgetCheckpoint gives up the checkpoint at pos, if there is one.
func (s *Sequence) ForgetCheckpoint(ctx context.Context, pos int) error {
	_, err := s.change(ctx, func(to stages.Caller) stages.Message {
		return &stages.ForgetCheckpoint{Seq: s.id, Pos: pos, Caller: to}
	})
	return err
}

// Resume makes the sequence hold as much of the beginning of a text as the engine has anywhere: in
// this sequence, in others, in checkpoints, in remembered states (Chunk.Remember), or on disk
// (Store). It returns how many tokens that is, at most all but the last: evaluate the others. If
// the engine has nothing of the text, the sequence is empty afterwards. Memory is shared until one
// of its holders writes to it. Resume heals a poisoned sequence, and forgets checkpoints of other
// texts. With latent attention what it takes over has the bits of the form in which it was
// computed.
func (s *Sequence) Resume(ctx context.Context, text []int32) (reused int, err error) {
	return s.resume(ctx, text, s.declared())
}

// resumeFrom resumes a text of which the engine has at least a number of tokens in memory; if it
// has fewer, the error is stages.ErrLessKnown.
func (s *Sequence) resumeFrom(ctx context.Context, text []int32, until, atLeast int) (reused int, err error) {
	d, err := s.change(ctx, func(to stages.Caller) stages.Message {
		return &stages.ResumeSequence{Seq: s.id, Tokens: slices.Clone(text), Until: until, AtLeast: atLeast, Caller: to}
	})
	if err != nil {
		return 0, err
	}
	return d.Pos, nil
}

// Fork makes another sequence that stands where this one does, without its checkpoints. They share
// memory until one of them writes to it. Where there is no memory for it now it waits, and begins
// where this one stands then. When ctx ends first there is no other sequence.
func (s *Sequence) Fork(ctx context.Context) (*Sequence, error) {
	if s.isClosed() {
		return nil, stages.ErrClosed
	}
	return s.e.newSequence(ctx, s.id, s.options)
}

// Description is where a sequence stands.
type Description struct {
	PosMax      int     // positions evaluated: the next one
	Busy        bool    // something is being done to it, and most else gives stages.ErrBusy
	Tokens      []int32 // [PosMax]; negative where a loaded state does not have them
	Checkpoints []int   // positions, oldest checkpoint first
	// what its chunks have taken that are over, those that failed included, and what Resume has
	// reused
	Account Account
}

// Describe asks the engine where the sequence stands; Len only knows what the last answer said.
func (s *Sequence) Describe(ctx context.Context) (Description, error) {
	d, err := s.change(ctx, func(to stages.Caller) stages.Message { return &stages.DescribeSequence{Seq: s.id, Caller: to} })
	if err != nil {
		return Description{}, err
	}
	return Description{PosMax: d.Pos, Busy: d.Busy, Tokens: slices.Clone(d.Tokens), Checkpoints: d.Checkpoints, Account: d.Account}, nil
}
