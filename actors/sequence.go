package actors

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/sample"
)

// LogitsWanted says of which rows a chunk's caller wants logits.
type LogitsWanted = stages.LogitsWanted

// The choices.
const (
	LastLogits = stages.LastLogits
	NoLogits   = stages.NoLogits
	AllLogits  = stages.AllLogits
	BestLogits = stages.BestLogits
)

// Pos is a position that a Chunk may assert. The zero value asserts none.
type Pos = stages.Pos

// At asserts a position.
func At(pos int) Pos { return stages.At(pos) }

// Sequence is one text: tokens evaluated one after the other, and the state they build up. It
// evaluates one chunk at a time; different sequences of an engine share its pipeline and may be
// used from different goroutines.
//
// When its ctx ends, a method returns the error of ctx within 100 ms, whatever hangs: the disk, the
// device, a reader or writer of the caller's. Evaluation is stopped (EvalChunk). Any other request
// (Reset, Resume, Checkpoint, and so on) is carried out all the same, as soon as the device gets to
// it, which an *UnfinishedError tells. One that replaces the state keeps the sequence busy until
// then; afterwards Len, Err and Describe tell where it stands. A sequence or a frozen state that
// comes too late is given back.
type Sequence struct {
	e  *Engine
	id stages.SeqID

	options SequenceOptions

	mu     sync.Mutex // guards the rest
	until  int        // as Declare says
	len    int
	poison error
	closed bool
	call   *call                  // memory for the next evaluation, or nil
	spare  *stages.ChunkEvaluated // an answer that is no longer needed, or nil
}

// Chunk is tokens to be evaluated together, and what is wanted of them.
type Chunk struct {
	Tokens []int32
	// Pos asserts where the chunk begins: At(n) makes the chunk fail with a *stages.PosError, and
	// change nothing, unless n positions have been evaluated. The zero value asserts nothing.
	Pos     Pos
	Logits  LogitsWanted
	Hidden  bool // the hidden state of every row before each layer and after the last
	Routing bool // the experts picked in every layer
	// Dump is what else of which layers is wanted: what they take, make on the way, and give
	// (WantsOf). It changes nothing that is computed, but brings much to the host.
	Dump []Want
	// Probe computes parts of the model by themselves, on numbers from outside, and leaves the
	// sequence unusable until its state is replaced (Reset). Remember has no effect then.
	Probe *Probe
	// Plain computes operations one by one that the device would compute together. The bits are the
	// same: a dump with it shows whether they are.
	Plain bool
	// Before is how many tokens of the same text come before these and were not read again: what
	// Resume returned. Latent attention has two forms of computing, chosen by the length of the
	// text that is read.
	Before int
	// Remember keeps states of the text for others that begin alike (Resume): at the end of the
	// chunk, and on the way there at a few borders between steps, within Config.CheckpointMemory.
	Remember bool
	// Until is how many positions the text is declared to reach, prompt and new tokens. There is
	// memory for all of them before the chunk begins: where there is none now, the chunk waits for
	// it, and what comes within these positions never does. 0 means what Declare says.
	Until int
}

// Evaluated is the outcome of a chunk.
type Evaluated struct {
	Pos     int         // of the first token
	Rows    int         // tokens evaluated
	Logits  []float32   // [wanted rows, vocab]; nil with BestLogits
	Best    sample.Best // with BestLogits: the stages.Best largest of the last row
	Hidden  []float32   // [layers+1, rows, hidden]
	Picks   []int32     // [layers with routed experts, rows, TopK], heaviest first
	Weights []float32   // likewise
	Dump    []Tensor    // what Chunk.Dump, Hidden and Routing want, by quantity and then by layer
	Account Account     // what the chunk took
}

// ID returns the name of the sequence in messages.
func (s *Sequence) ID() stages.SeqID { return s.id }

// Len returns the number of positions evaluated.
func (s *Sequence) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.len
}

// Err returns why the sequence is unusable (a *stages.PoisonedError), or nil. What replaces its
// state heals it: Reset, Load, RestoreTo, Rewind, Resume.
func (s *Sequence) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.poison
}

// Declare says how many positions the text will reach, of evaluations from now on (Chunk.Until) and
// of Resume. With 0 it is not known: evaluation reserves memory for its own tokens only, and may
// fail in the middle of the text with a *stages.StateMemoryError when nobody is about to give
// memory back. Who has declared an end is waited for by others until the sequence is closed or
// reset.
func (s *Sequence) Declare(positions int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = positions
}

// declared returns what the last Declare said.
func (s *Sequence) declared() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until
}

func (s *Sequence) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Eval appends tokens and returns the logits [vocab] after the last of them. See EvalChunk for
// errors and cancellation.
func (s *Sequence) Eval(ctx context.Context, tokens []int32) ([]float32, error) {
	r, err := s.eval(ctx, Chunk{Tokens: tokens})
	if err != nil {
		return nil, err
	}
	logits := r.Logits
	r.Logits = nil // the caller's
	s.done(r)
	return logits, nil
}

// Use appends tokens and lends f the logits [vocab] after the last of them, which f must not keep.
// It allocates nothing, whereas Eval makes a slice of the vocabulary for each token. The error is
// that of Eval, or of f.
func (s *Sequence) Use(ctx context.Context, tokens []int32, f func(logits []float32) error) error {
	r, err := s.eval(ctx, Chunk{Tokens: tokens})
	if err != nil {
		return err
	}
	defer s.done(r)
	return f(r.Logits)
}

// UseBest is Use with only the largest logits, at most stages.Best of them, which the device finds.
func (s *Sequence) UseBest(ctx context.Context, tokens []int32, f func(sample.Best) error) error {
	r, err := s.eval(ctx, Chunk{Tokens: tokens, Logits: BestLogits})
	if err != nil {
		return err
	}
	defer s.done(r)
	return f(sample.Best(r.Largest))
}

// EvalChunk appends tokens. Spans of a traced engine are children of the span in ctx.
//
// Where memory for states is short, it waits in a queue: see SequenceOptions for the order, and
// Chunk.Until for what it waits for. The error is a *stages.QueueFullError if too many wait, and a
// *stages.StateMemoryError if waiting cannot help.
//
// When ctx ends, tokens that are not being computed are given up and the sequence stands where Len
// says. A step of this sequence alone is given up between two layers. What was given up is taken
// back or, with recurrent state, poisons the sequence: Err tells. A step that others share goes on
// to its end. If that does not come in time, or a layer hangs, the error is an *UnfinishedError and
// the sequence is busy until then. Bad arguments change nothing. Any other error comes from a
// failed step, which poisons the sequence unless it failed for lack of memory before it began.
func (s *Sequence) EvalChunk(ctx context.Context, c Chunk) (*Evaluated, error) {
	r, err := s.eval(ctx, c)
	if err != nil {
		return nil, err
	}
	out := &Evaluated{Pos: r.Pos, Rows: r.Rows, Logits: r.Logits, Best: sample.Best(r.Largest), Dump: r.Dump, Account: r.Account}
	out.collect(&c)
	return out, nil
}

// closePatience is how long Sequence.Close waits for what is under way of the sequence.
const closePatience = time.Second

// Close gives the sequence's state back. A chunk under way ends with ErrClosed first. Close waits
// for that at most a second: if a disk or a device does not answer, it returns, and the engine
// gives the state back when the answer comes. Closing again, or after the engine, is a no-op.
func (s *Sequence) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		return nil
	}
	err := s.close(closePatience, false)
	if impatient := errors.Is(err, context.DeadlineExceeded); impatient {
		err = s.close(endPatience, true) // the sequencer answers at once
		if errors.Is(err, stages.ErrUnknownSequence) {
			return nil // closed meanwhile
		}
	}
	if errors.Is(err, stages.ErrClosed) {
		return nil
	}
	return err
}

// close asks for the end of the sequence, which comes at once with now.
func (s *Sequence) close(patience time.Duration, now bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a, err := s.e.rt.Request(ctx, func(to stages.Caller) stages.Message { return &stages.CloseSequence{Seq: s.id, Now: now, Caller: to} }, nil)
	if err == nil {
		err = a.(*stages.SequenceDone).Err
	}
	return err
}
