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
)

// PoisonedError reports a sequence whose last step failed half-way: its layers stand at different lengths. Only reset
// and close are possible.
type PoisonedError struct {
	Seq SeqID
	Err error // what failed
}

func (e *PoisonedError) Error() string {
	return fmt.Sprintf("moeflux: sequence %d is unusable after a failed step, reset or close it: %v", e.Seq, e.Err)
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

// StateMemoryError reports that the pool of key-value pages has too few left for a chunk. The chunk was not begun.
type StateMemoryError struct {
	Pages, Used, Max int
}

func (e *StateMemoryError) Error() string {
	return fmt.Sprintf("moeflux: the chunk needs %d more key-value pages, %d of %d are in use; close or reset a sequence",
		e.Pages, e.Used, e.Max)
}

// ScoreError reports a router output that is not a finite number.
type ScoreError struct {
	Row, Expert int
	Value       float32
}

func (e *ScoreError) Error() string {
	return fmt.Sprintf("router score of expert %d in row %d is %v; the weights or the sequence's state are damaged", e.Expert, e.Row, e.Value)
}
