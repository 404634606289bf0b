package stages

// OpenSequence makes a sequence: an empty one, which takes no memory yet, or one that stands where
// another does, which is busy until it is made. Caller to sequencer; the answer is a SequenceDone.
type OpenSequence struct {
	Outside
	Seq    SeqID
	From   SeqID // 0: empty
	Class  Class
	Key    string // who shares memory with others by what they were served: a tenant, say
	Weight int    // of Key among others: 1 to fair.MaxWeight, 0 means 1; the last one given counts
	Scope  string // whose texts it may resume, and for whom its own are remembered; of a fork: From's
	Caller Caller
}

func (*OpenSequence) MessageKind() Kind         { return KindOpenSequence }
func (m *OpenSequence) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// ResetSequence empties a sequence, forgets its checkpoints and heals a poisoned one. Caller to
// sequencer; answered by SequenceDone, until when the sequence is busy. If it fails the sequence is
// poisoned.
type ResetSequence struct {
	Outside
	Seq    SeqID
	Caller Caller
}

func (*ResetSequence) MessageKind() Kind         { return KindResetSequence }
func (m *ResetSequence) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// CloseSequence gives a sequence's state and checkpoints back, when what is under way of it has
// ended. Caller to sequencer; answered by SequenceDone.
type CloseSequence struct {
	Outside
	Seq SeqID
	// Now answers at once, whatever is under way; so it does a chunk, with Unfinished, of which
	// nothing is kept. It may follow a CloseSequence that has not been answered yet, and answers
	// that one too. The state is given back when what is under way has ended.
	Now    bool
	Caller Caller
}

func (*CloseSequence) MessageKind() Kind         { return KindCloseSequence }
func (m *CloseSequence) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// TruncateSequence takes a sequence back to a position; checkpoints past it are forgotten. What the
// sequence was promised for positions to come (EvalChunk.Until) is free for others. Caller to
// sequencer; answered by SequenceDone.
type TruncateSequence struct {
	Outside
	Seq SeqID
	Pos int // below 0 means 0; at or past the end nothing changes
	// Nearest takes the highest position up to Pos that can be reached, if need be by a checkpoint
	// or by emptying the sequence. It heals a poisoned sequence. Without it a position that cannot
	// be reached is a CannotTruncateLinear.
	Nearest bool
	Caller  Caller
}

func (*TruncateSequence) MessageKind() Kind         { return KindTruncateSequence }
func (m *TruncateSequence) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// KeepCheckpoint keeps a sequence's present state under its position. Caller to sequencer; answered
// by SequenceDone.
type KeepCheckpoint struct {
	Outside
	Seq    SeqID
	Pos    int // must be the sequence's length
	Caller Caller
}

func (*KeepCheckpoint) MessageKind() Kind         { return KindKeepCheckpoint }
func (m *KeepCheckpoint) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// RestoreCheckpoint takes a sequence back to a checkpoint, which stays; those past it are
// forgotten. It heals a poisoned sequence. Caller to sequencer; answered by SequenceDone.
type RestoreCheckpoint struct {
	Outside
	Seq    SeqID
	Pos    int
	Caller Caller
}

func (*RestoreCheckpoint) MessageKind() Kind         { return KindRestoreCheckpoint }
func (m *RestoreCheckpoint) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// ForgetCheckpoint gives a checkpoint back. It is no error if there is none. Caller to sequencer;
// answered by SequenceDone.
type ForgetCheckpoint struct {
	Outside
	Seq    SeqID
	Pos    int
	Caller Caller
}

func (*ForgetCheckpoint) MessageKind() Kind         { return KindForgetCheckpoint }
func (m *ForgetCheckpoint) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// CapCheckpoints sets how many checkpoints a sequence keeps from its next one on. The newest and
// that at position 0 count, but are kept in any case. Caller to sequencer; answered by
// SequenceDone.
type CapCheckpoints struct {
	Outside
	Seq    SeqID
	Max    int // below 0 means 0
	Caller Caller
}

func (*CapCheckpoints) MessageKind() Kind         { return KindCapCheckpoints }
func (m *CapCheckpoints) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// ResumeSequence makes a sequence hold as much of the beginning of a text as there is anywhere in
// the engine: in itself, in another sequence, in a checkpoint, in a state that was remembered. At
// least one token is left to be evaluated. It heals a poisoned sequence. Caller to sequencer;
// answered by SequenceDone, whose Pos is the number of tokens that need not be read.
type ResumeSequence struct {
	Outside
	Seq    SeqID
	Tokens []int32 // passes to the sequencer
	Until  int     // as of EvalChunk, if the text goes on from what there is of it
	// AtLeast is the fewest tokens of the text that are of use. If there are fewer, nothing is
	// changed, and the error is ErrLessKnown: the caller has more of it elsewhere.
	AtLeast int
	Caller  Caller
}

func (*ResumeSequence) MessageKind() Kind         { return KindResumeSequence }
func (m *ResumeSequence) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// ForgetTexts gives up all that is remembered of texts. Caller to sequencer; answered by
// SequenceDone.
type ForgetTexts struct {
	Outside
	Caller Caller
}

func (*ForgetTexts) MessageKind() Kind         { return KindForgetTexts }
func (m *ForgetTexts) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// DescribeSequence asks where a sequence stands. Caller to sequencer; answered by SequenceDone.
type DescribeSequence struct {
	Outside
	Seq    SeqID
	Caller Caller
}

func (*DescribeSequence) MessageKind() Kind         { return KindDescribeSequence }
func (m *DescribeSequence) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// SequenceDone answers what is asked of a sequence. Sequencer to caller.
type SequenceDone struct {
	Outside
	Seq  SeqID
	Kind SequenceOp
	Pos  int // positions of the sequence now
	// of DescribeSequence: positions, in the order in which they were stored
	Checkpoints []int
	// of DescribeSequence: token ids of the positions, below 0 where they are not known; shared,
	// read-only
	Tokens []int32
	Busy   bool // of DescribeSequence: something is being done to the sequence
	// of DescribeSequence: of all chunks that are over, and what ResumeSequence has reused
	Account Account
	Err     error
	Poison  error // why the sequence is unusable from now on, or nil
}

func (*SequenceDone) MessageKind() Kind { return KindSequenceDone }

// SequenceOp is what was asked of a sequence.
type SequenceOp uint8

// The operations on a sequence.
const (
	Opened SequenceOp = iota
	WasReset
	Closed
	Truncated
	Checkpointed
	Restored
	Forgotten
	Resumed
	Described
	Adopted
	Capped
	Released
	Parked
)

// FreezeSequence makes a frozen state of a sequence, to be read. The sequence may go on. Caller to
// sequencer; answered by StateReady.
type FreezeSequence struct {
	Outside
	Seq    SeqID
	Caller Caller
}

func (*FreezeSequence) MessageKind() Kind         { return KindFreezeSequence }
func (m *FreezeSequence) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// FreezeText makes a frozen state of as much of the beginning of a text as there is anywhere in the
// engine, to be read: mostly of one that was remembered. It never waits for memory. Caller to
// sequencer; answered by StateReady, with ErrUnknownState if there is nothing of the text.
type FreezeText struct {
	Outside
	Tokens []int32 // shared, read-only
	Scope  string  // whose text it is
	Caller Caller
}

func (*FreezeText) MessageKind() Kind         { return KindFreezeText }
func (m *FreezeText) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// DraftState makes room for a state that is to be filled and to take the place of a sequence's. The
// sequence is busy until then. Caller to sequencer; answered by StateReady.
type DraftState struct {
	Outside
	Seq       SeqID
	Positions int
	// InPlace gives the sequence's own state up where there is no room for both. Should the draft
	// not be adopted, the sequence is poisoned with ErrGivenUp.
	InPlace bool
	AtOnce  bool // where there is no room, say so rather than wait for it
	Caller  Caller
}

func (*DraftState) MessageKind() Kind         { return KindDraftState }
func (m *DraftState) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// StateReady answers FreezeSequence, FreezeText and DraftState. Sequencer to caller, who sends
// ReleaseState or, of a draft, AdoptState in the end.
type StateReady struct {
	Outside
	State  StateID
	Tokens []int32 // of a frozen state: as of SequenceDone; shared, read-only
	Memory any     // where it lies, in the form that dispatch uses
	Err    error
}

func (*StateReady) MessageKind() Kind { return KindStateReady }

// AdoptState puts a draft, which has been filled, in the place of its sequence's state, forgets the
// sequence's checkpoints of other texts, and heals it if it is poisoned. Caller to sequencer;
// answered by SequenceDone. After an error the draft is still the caller's to release.
type AdoptState struct {
	Outside
	Seq    SeqID
	State  StateID
	Tokens []int32 // of all positions, below 0 where they are not known; passes to the sequencer
	Caller Caller
}

func (*AdoptState) MessageKind() Kind         { return KindAdoptState }
func (m *AdoptState) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// ReleaseState gives a frozen state or a draft back. Caller to sequencer; answered by SequenceDone,
// which tells where the draft's sequence stands, and of another state nothing.
type ReleaseState struct {
	Outside
	State  StateID
	Caller Caller
}

func (*ReleaseState) MessageKind() Kind         { return KindReleaseState }
func (m *ReleaseState) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// CopyState makes a state of another one's recurrent state: a new state, or one that is replaced.
// Sequencer to dispatch; answered by StateCopied when the device has done so. What is sent after
// it finds the copy.
type CopyState struct {
	Outside
	Op       uint64
	From, To StateID  // From 0: zeros
	Take     bool     // From is not needed any more: its memory becomes To's, without a copy
	Expose   bool     // answer with the memory of To
	Pages    []PageID // with Expose: its pages; shared, read-only
}

func (*CopyState) MessageKind() Kind { return KindCopyState }

// StateCopied answers CopyState. Dispatch to sequencer.
type StateCopied struct {
	Outside
	Op     uint64
	Memory any // if it was to be exposed
	Err    error
}

func (*StateCopied) MessageKind() Kind { return KindStateCopied }

// DropState gives a state's recurrent memory back. Sequencer to dispatch.
type DropState struct {
	Outside
	State StateID
}

func (*DropState) MessageKind() Kind { return KindDropState }
