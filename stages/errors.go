package stages

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed is the answer to whoever asks something of a closed engine or sequence.
	ErrClosed = errors.New("moeflux: closed")
	// ErrBusy is the answer to a chunk for a sequence that is evaluating one already.
	ErrBusy = errors.New("moeflux: the sequence is evaluating another chunk")
	// ErrEmptyChunk is the answer to a chunk without tokens.
	ErrEmptyChunk = errors.New("moeflux: no tokens to evaluate")
	// ErrUnknownSequence is the answer to a message that names a sequence which is not open.
	ErrUnknownSequence = errors.New("moeflux: no such sequence")
	// ErrUnknownState is the answer to a message that names a draft which there is not, or one of
	// another size.
	ErrUnknownState = errors.New("moeflux: no such draft of a state")
	// ErrExpertsMapped is the answer to ForgetExperts where experts are mapped or loaded at Open:
	// the engine has no slots to empty.
	ErrExpertsMapped = errors.New("moeflux: all experts are mapped or loaded, none can be forgotten")
)

// PoisonedError reports a sequence whose last step failed half-way: its layers may stand at
// different lengths. Only what replaces the whole state is possible: reset, load, restore, resume,
// and close.
type PoisonedError struct {
	Seq SeqID
	Err error // what failed
}

func (e *PoisonedError) Error() string {
	return fmt.Sprintf("moeflux: sequence %d is unusable after a failed step; reset, restore, load or close it: %v", e.Seq, e.Err)
}
func (e *PoisonedError) Unwrap() error { return e.Err }

// StepError reports a step that failed.
type StepError struct {
	Stage StageID
	Layer int
	Err   error
}

func (e *StepError) Error() string {
	return fmt.Sprintf("moeflux: %s, layer %d: %v", e.Stage, e.Layer, e.Err)
}
func (e *StepError) Unwrap() error { return e.Err }

// TokenError reports a token id outside the vocabulary.
type TokenError struct {
	Index int // in the chunk
	Token int32
	Vocab int
}

func (e *TokenError) Error() string {
	return fmt.Sprintf("moeflux: token %d at index %d is outside the vocabulary of %d", e.Token, e.Index, e.Vocab)
}

// PosError reports a chunk that does not begin where its sequence ends.
type PosError struct {
	Seq       SeqID
	Pos, Want int
}

func (e *PosError) Error() string {
	return fmt.Sprintf("moeflux: sequence %d has %d positions, the chunk begins at %d", e.Seq, e.Want, e.Pos)
}

// ContextError reports a chunk that does not fit into the positions a sequence may have.
type ContextError struct {
	Len, Tokens, Max int
}

func (e *ContextError) Error() string {
	return fmt.Sprintf("moeflux: %d tokens after %d positions exceed the context of %d; raise --ctx or shorten the prompt",
		e.Tokens, e.Len, e.Max)
}

// StateMemoryError reports that the pool of key-value pages is used up.
type StateMemoryError struct {
	Pages, Used, Max int
}

func (e *StateMemoryError) Error() string {
	return fmt.Sprintf("moeflux: %d more key-value pages are needed, %d of %d are in use; close a sequence, forget checkpoints or lower --ctx",
		e.Pages, e.Used, e.Max)
}

// ScoreError reports a router output that is not a finite number.
type ScoreError struct {
	Row, Expert int
}

func (e *ScoreError) Error() string {
	return fmt.Sprintf("router score of expert %d in row %d is no finite number; the weights or the sequence's state are damaged", e.Expert, e.Row)
}

// CannotTruncateLinear reports a truncation in the midst of a sequence with recurrent state, which
// cannot be unwound. Nothing was changed.
type CannotTruncateLinear struct {
	Pos, PosMax int // that was asked for, and that the sequence has
	Nearest     int // the highest position up to Pos that can be restored; 0 is the empty sequence
}

func (e *CannotTruncateLinear) Error() string {
	return fmt.Sprintf("moeflux: a sequence of %d positions cannot be cut to %d, for its model has recurrent state; it can go back to %d, by a checkpoint",
		e.PosMax, e.Pos, e.Nearest)
}

// NoCheckpointError reports a position of which the sequence has no checkpoint. Nothing was
// changed.
type NoCheckpointError struct {
	Seq SeqID
	Pos int
}

func (e *NoCheckpointError) Error() string {
	return fmt.Sprintf("moeflux: sequence %d has no checkpoint at %d", e.Seq, e.Pos)
}

// CheckpointPosError reports a checkpoint that was to be made elsewhere than where the sequence
// stands.
type CheckpointPosError struct {
	Seq      SeqID
	Pos, Len int
}

func (e *CheckpointPosError) Error() string {
	return fmt.Sprintf("moeflux: a checkpoint at %d of sequence %d, which stands at %d", e.Pos, e.Seq, e.Len)
}

// CheckpointMemoryError reports a checkpoint that does not fit beside those that are protected:
// position 0 and each sequence's newest.
type CheckpointMemoryError struct {
	Need, Used, Max int64 // bytes
}

func (e *CheckpointMemoryError) Error() string {
	return fmt.Sprintf("moeflux: a checkpoint takes %d bytes, %d of %d are in use; forget some or raise the memory for checkpoints", e.Need, e.Used, e.Max)
}
