package stages

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrClosed answers a request to a closed engine or sequence.
	ErrClosed = errors.New("closed")
	// ErrBusy answers a request for a sequence on which another one has not ended.
	ErrBusy = errors.New("the sequence is busy with another request")
	// ErrOpen answers an OpenSequence with a number that is in use.
	ErrOpen = errors.New("is already open")
	// ErrEmptyChunk answers a chunk without tokens.
	ErrEmptyChunk = errors.New("no tokens to evaluate")
	// ErrUnknownSequence answers a message for a sequence that is not open.
	ErrUnknownSequence = errors.New("no such sequence")
	// ErrUnknownState answers a message for a state that does not exist, or for a draft of another
	// sequence or size.
	ErrUnknownState = errors.New("no such state")
	// ErrLessKnown answers a ResumeSequence of whose text there is less than was asked for.
	ErrLessKnown = errors.New("less of the text is known than was asked for")
	// ErrGivenUp is why a sequence is poisoned that gave its state up for one that was then not
	// loaded.
	ErrGivenUp = errors.New("its state was given up for another one, which was not loaded")
	// ErrExpertsMapped is the answer to ForgetExperts where experts are mapped or loaded at Open:
	// the engine has no slots to empty.
	ErrExpertsMapped = errors.New("all experts are mapped or loaded, none can be forgotten")
)

// ErrProbed is wrapped by the PoisonedError of a sequence that a Probe was made with.
var ErrProbed = errors.New("only parts of the model have computed it")

// PoisonedError reports a sequence whose state is unusable, as after a step that failed midway and
// left layers at different lengths. It takes only what replaces the whole state: reset, load,
// restore, resume, and close.
type PoisonedError struct {
	Seq SeqID
	Err error // what failed
}

func (e *PoisonedError) Error() string {
	return fmt.Sprintf("sequence %d is unusable: %v; reset, restore, load or close it", e.Seq, e.Err)
}
func (e *PoisonedError) Unwrap() error { return e.Err }

// ParkedError reports a state that was parked and could not be brought back. It is lost.
type ParkedError struct{ Err error }

func (e *ParkedError) Error() string { return fmt.Sprintf("its parked state is lost: %v", e.Err) }
func (e *ParkedError) Unwrap() error { return e.Err }

// ParkFullError reports that the parking store has no room for a state.
type ParkFullError struct {
	Need, Used, Max int64 // bytes of host memory
}

func (e *ParkFullError) Error() string {
	return fmt.Sprintf("a parked state takes %d bytes, and %d of %d are in use; raise Config.ParkedMemory or set Config.StateDir", e.Need, e.Used, e.Max)
}

// StepError reports a step that failed.
type StepError struct {
	Stage StageID
	Layer int
	Err   error
}

func (e *StepError) Error() string {
	return fmt.Sprintf("%s, layer %d: %v", e.Stage, e.Layer, e.Err)
}
func (e *StepError) Unwrap() error { return e.Err }

// LayerError reports a layer that has no router.
type LayerError struct {
	Layer         int
	First, Layers int // the layers from First on, of so many, have one
}

func (e *LayerError) Error() string {
	return fmt.Sprintf("moeflux: layer %d has no router; layers %d to %d have one", e.Layer, e.First, e.Layers-1)
}

// TokenError reports a token id outside the vocabulary.
type TokenError struct {
	Index int // in the chunk
	Token int32
	Vocab int
}

func (e *TokenError) Error() string {
	return fmt.Sprintf("token %d at index %d is outside the vocabulary of %d", e.Token, e.Index, e.Vocab)
}

// PosError reports a chunk that does not begin where its sequence ends.
type PosError struct {
	Seq SeqID
	Pos Pos // that the chunk asserts
	Len int // of the sequence
}

func (e *PosError) Error() string {
	return fmt.Sprintf("sequence %d has %d positions, the chunk begins at %s", e.Seq, e.Len, e.Pos)
}

// ContextError reports a chunk that does not fit into the positions a sequence may have.
type ContextError struct {
	Len, Tokens, Max int
}

func (e *ContextError) Error() string {
	return fmt.Sprintf("%d tokens after %d positions exceed the context of %d; raise Config.Context or shorten the text",
		e.Tokens, e.Len, e.Max)
}

// StateMemoryError reports that the memory for states is used up, by pages of keys and values and
// by the recurrent states of sequences, and that waiting would not help: nobody who has memory is
// about to give it back, or all of it would not do. What is only remembered of texts does not
// count: it gives way.
type StateMemoryError struct {
	Pages, States   int   // that are needed
	Need, Used, Max int64 // bytes; Used includes what others were promised
	// Sequences is how many sequences have memory if there may be no more of them, whatever they
	// need (Config.MaxSequences); 0 otherwise.
	Sequences int
}

func (e *StateMemoryError) Error() string {
	if e.Sequences > 0 {
		return fmt.Sprintf("%d sequences have memory, and there may be no more; close or reset one, or raise Config.MaxSequences", e.Sequences)
	}
	return fmt.Sprintf("states need another %d bytes, but %d of %d are already in use; close a sequence or raise Config.StateMemory",
		e.Need, e.Used, e.Max)
}

// QueueFullError reports that too many requests already wait for memory. The one that is turned
// away is of the lowest class, and of the key of which most wait.
type QueueFullError struct {
	Waiting int // that wait now
	// RetryAfter is when there will be a place in the queue, by how fast it moved lately.
	RetryAfter time.Duration
}

func (e *QueueFullError) Error() string {
	return fmt.Sprintf("%d requests already wait for memory; try again in %v, or raise Config.MaxWaiting or Config.StateMemory",
		e.Waiting, e.RetryAfter.Round(time.Millisecond))
}

// ScoreError reports a router output that is not a finite number.
type ScoreError struct {
	Row, Expert int
}

func (e *ScoreError) Error() string {
	return fmt.Sprintf("router score of expert %d in row %d is not a finite number; the weights or the sequence's state are damaged", e.Expert, e.Row)
}

// CannotTruncateLinear reports a truncation in the middle of a sequence with recurrent state, which
// cannot be undone, or to where layers with a window no longer keep all that the next position
// attends to. Nothing was changed.
type CannotTruncateLinear struct {
	Pos     int // that was asked for
	PosMax  int // where the sequence stands
	Nearest int // the highest position up to Pos that can be restored; 0 is the empty sequence
}

func (e *CannotTruncateLinear) Error() string {
	return fmt.Sprintf("a sequence of %d positions cannot be cut to %d because its model has recurrent state, or layers that keep only the last positions; a checkpoint can take it back to %d",
		e.PosMax, e.Pos, e.Nearest)
}

// NoCheckpointError reports a position at which the sequence has no checkpoint. Nothing was
// changed.
type NoCheckpointError struct {
	Seq SeqID
	Pos int
}

func (e *NoCheckpointError) Error() string {
	return fmt.Sprintf("sequence %d has no checkpoint at %d", e.Seq, e.Pos)
}

// CheckpointPosError reports a request for a checkpoint at a position other than the sequence's
// own.
type CheckpointPosError struct {
	Seq      SeqID
	Pos, Len int
}

func (e *CheckpointPosError) Error() string {
	return fmt.Sprintf("no checkpoint can be made at %d: sequence %d stands at %d", e.Pos, e.Seq, e.Len)
}

// CheckpointMemoryError reports a checkpoint that does not fit beside those that are protected:
// position 0 and each sequence's newest.
type CheckpointMemoryError struct {
	Need, Used, Max int64 // bytes
}

func (e *CheckpointMemoryError) Error() string {
	return fmt.Sprintf("a checkpoint takes %d bytes, and %d of %d are in use; forget some or raise Config.CheckpointMemory", e.Need, e.Used, e.Max)
}
