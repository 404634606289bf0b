package stages

// Message is what stages exchange. Messages about a step embed Step; those of a caller name the
// sequence instead and have a nil Head.
//
// A message belongs to its receiver until it has been handled. Then its memory may become another
// message's (Spent), so a stage that needs something of it later makes a copy.
type Message interface {
	Head() *Step       // nil if it is about no step
	MessageKind() Kind // its type, as a number

	// Stamp notes when the message was sent, on the engine's clock, and Stamped returns that.
	Stamp(ns int64)
	Stamped() int64

	// spend empties a message that was handled and keeps its memory for another of its type. Most
	// messages leave that to the garbage collector: the spend of Step and Outside does nothing.
	spend(*Spent)
}

// Outside heads the messages that belong to no step.
type Outside struct {
	SentNS int64 // when it was sent, on the engine's clock
}

// Head returns nil.
func (*Outside) Head() *Step { return nil }

// Stamp notes when the message was sent.
func (o *Outside) Stamp(ns int64) { o.SentNS = ns }

// Stamped returns when the message was sent; 0 if it does not say.
func (o *Outside) Stamped() int64 { return o.SentNS }

func (*Outside) spend(*Spent) {}

// Caller is where an answer goes: something that the shell understands (a channel, a PID). Stages
// only pass it on.
type Caller any

// LogitsWanted says which rows of a chunk its caller wants logits of.
type LogitsWanted uint8

// The choices.
const (
	LastLogits LogitsWanted = iota // of the chunk's last token
	NoLogits
	AllLogits
	BestLogits // only the largest ones of the chunk's last token
)

// Best is how many logits BestLogits asks for. A smaller vocabulary has fewer.
const Best = 64

// BestOf returns how many those are for a vocabulary.
func BestOf(vocab int) int { return min(Best, vocab) }

// Largest is the largest logits of rows and their tokens, BestOf(vocab) of each row: in descending
// order, of equal ones the lower token first.
type Largest struct {
	Logits []float32
	Tokens []int32 // [len(Logits)]
}

// EvalChunk asks to evaluate tokens of one sequence from its present length on. Caller to
// sequencer. A sequence evaluates one chunk at a time. The answer is a ChunkEvaluated.
type EvalChunk struct {
	Outside
	Seq    SeqID
	Pos    Pos     // must be the sequence's length if it asserts any
	Tokens []int32 // passes to the sequencer
	Logits LogitsWanted
	// Wants is what to answer with beside logits, in the order of Want.Compare; shared, read-only.
	Wants   []Want
	Probe   *Probe // what is computed and on what, or nil
	Plain   bool   // operations that a device could compute together are computed one by one
	Trace   TraceContext
	Request uint64 // identifies this request in CancelEval
	Caller  Caller
	// Until is how many positions the text is declared to reach: its prompt and the most new
	// tokens. There is memory for all of them before the chunk begins. 0 declares none: there is
	// memory for this chunk, and the text may have to end for lack of it later.
	Until int
	// Before is how many positions before the first token belong to the same text and were not read
	// again (SequenceDone.Pos of a ResumeSequence). The tokens are computed in the form that the
	// whole text would be.
	Before int
	// Remember makes the sequencer keep states of this text, some on the way and one at the end,
	// for other texts that begin alike.
	Remember bool
	// Spare is nil, or an earlier answer whose memory, Logits included, passes back to be used
	// again.
	Spare *ChunkEvaluated
}

func (*EvalChunk) MessageKind() Kind         { return KindEvalChunk }
func (m *EvalChunk) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// ChunkEvaluated answers EvalChunk. Sequencer to caller. Everything passes to the caller. After an
// error Rows says how many tokens were evaluated and kept before it.
type ChunkEvaluated struct {
	Outside
	Seq     SeqID
	Request uint64 // of the EvalChunk
	Pos     int    // of the first token
	Rows    int
	Logits  []float32 // [wanted rows, vocab]; nil with BestLogits
	Largest Largest   // [BestOf(vocab)] with BestLogits, else empty
	Dump    []Tensor  // what was wanted beside logits, in the order of EvalChunk.Wants
	Account Account   // of this chunk; if Unfinished, so far
	Err     error
	Poison  error // why the sequence is unusable from now on, or nil
	// Unfinished means that the chunk's sequence was closed while its step goes on
	// (CloseSequence.Now). The EvalChunk and its Tokens stay with the sequencer.
	Unfinished bool
}

func (*ChunkEvaluated) MessageKind() Kind { return KindChunkEvaluated }

// CancelEval stops a chunk. Caller to sequencer. A chunk that is not being computed ends at once.
// One that is being computed ends between steps or, when all chunks of its step are cancelled,
// between layers. Its rows are taken back then; a sequence with recurrent state is poisoned
// instead. The chunk's caller gets the answer, with Cause.
type CancelEval struct {
	Outside
	Seq     SeqID
	Request uint64
	Cause   error
}

func (*CancelEval) MessageKind() Kind { return KindCancelEval }

// Ask names no caller: a cancellation has no answer.
func (*CancelEval) Ask(Caller) StageID { return Sequencer }

// Withdraw takes back a request that waits for memory, other than EvalChunk, for which there is
// CancelEval. Its caller gets the answer, with Cause. A request that does not wait goes on. Caller
// to sequencer; it has no answer of its own.
type Withdraw struct {
	Outside
	Of    Caller // the request's; must be comparable
	Cause error
}

func (*Withdraw) MessageKind() Kind { return KindWithdraw }

// Ask names no caller: this has no answer.
func (*Withdraw) Ask(Caller) StageID { return Sequencer }

// ForgetSequence tells the router to drop its predictions for a sequence. Sequencer to router.
type ForgetSequence struct {
	Outside
	Seq SeqID
}

func (*ForgetSequence) MessageKind() Kind { return KindForgetSequence }

// CollectStats gathers figures. It travels from the sequencer to router, expert-IO, dispatch and
// combine. Each adds its own, and combine's shell answers the caller with it. Stats passes along
// with the message.
type CollectStats struct {
	Outside
	Stats  *Stats
	Caller Caller
}

func (*CollectStats) MessageKind() Kind { return KindCollectStats }

func (m *CollectStats) Ask(from Caller) StageID {
	if m.Stats == nil {
		m.Stats = new(Stats)
	}
	return asks(&m.Caller, from, Sequencer)
}

// ResizeSlots bounds the number of expert slots. There are two bounds, the caller's and the
// memory's (the governor's), and as many slots as both allow: at least those of one wave, at most
// those that the engine was opened with. A bound holds until another ResizeSlots of its kind; one
// of all slots or more lifts it. Fewer slots are reached as experts can be spared, and the memory
// of slots that are given up goes back to the system; more come back empty. Anybody to expert-IO.
// The answer is a SlotsResized.
type ResizeSlots struct {
	Outside
	Slots  int
	Memory bool // the bound is the memory's; only the governor sets it
	Caller Caller
}

func (*ResizeSlots) MessageKind() Kind { return KindResizeSlots }

func (m *ResizeSlots) Ask(from Caller) StageID {
	m.Memory = false
	return asks(&m.Caller, from, ExpertIO)
}

// SlotsResized answers ResizeSlots when there are no more slots than both bounds allow, or another
// ResizeSlots of the same kind has come. Expert-IO to caller.
type SlotsResized struct {
	Outside
	Slots int // the number of slots now
}

func (*SlotsResized) MessageKind() Kind { return KindSlotsResized }

// ForgetExperts drops what is predicted and every expert that no step uses, so that the next picks
// of these experts are misses. It ends a warm start. Anybody to router, which forgets each
// sequence's last picks and passes the message on to expert-IO.
type ForgetExperts struct {
	Outside
	Caller Caller
}

func (*ForgetExperts) MessageKind() Kind         { return KindForgetExperts }
func (m *ForgetExperts) Ask(from Caller) StageID { return asks(&m.Caller, from, Router) }

// ExpertsForgotten answers ForgetExperts. It comes when every speculative read that was under way
// has ended, for its slot is the reader's until then. Expert-IO to caller.
type ExpertsForgotten struct {
	Outside
	Err error // ErrExpertsMapped, or nil
}

func (*ExpertsForgotten) MessageKind() Kind { return KindExpertsForgotten }

// DescribePredictions asks what the router knows of the next row of a sequence before that row is
// computed. Caller to router. The answer is a PredictionsDescribed.
type DescribePredictions struct {
	Outside
	Seq    SeqID
	Layer  int
	Caller Caller
}

func (*DescribePredictions) MessageKind() Kind         { return KindDescribePredictions }
func (m *DescribePredictions) Ask(from Caller) StageID { return asks(&m.Caller, from, Router) }

// PredictionsDescribed answers DescribePredictions. Router to caller.
type PredictionsDescribed struct {
	Outside
	// the picks of the row before, heaviest first; none before the first row, or after
	// ForgetSequence or ForgetExperts
	Predictions []Prediction
	Err         error // a layer without a router
}

func (*PredictionsDescribed) MessageKind() Kind { return KindPredictionsDescribed }

// Prediction is an expert that a row may pick.
type Prediction struct {
	Expert int32
	Chance float32 // by experience in this layer, 0 to 1
}

// WarmSlots lets expert-IO fill empty slots whenever the disk has nothing else to do: with the
// experts that it names or, if it names none, with those that earlier runs used most, and if there
// are slots for all, with all. Engine or expert host to expert-IO.
type WarmSlots struct {
	Outside
	Keys []int32 // layer·Experts+expert, those first that are read first; shared, read-only
}

func (*WarmSlots) MessageKind() Kind { return KindWarmSlots }

// Drain stops intake: from now on EvalChunk and OpenSequence are refused with ErrClosed, and so is
// what waits for memory. Running chunks end as if cancelled, and when no chunk and no step is left
// the answer is Drained. Caller to sequencer.
type Drain struct {
	Outside
	Finish bool // running chunks are finished instead; a later Drain may cancel them
	Caller Caller
}

func (*Drain) MessageKind() Kind         { return KindDrain }
func (m *Drain) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// Drained answers Drain: nothing is in flight any more. Sequencer to caller.
type Drained struct{ Outside }

func (*Drained) MessageKind() Kind { return KindDrained }

// StintOver tells the sequencer that a text's stint in the memory for states is over. Shell to
// sequencer, after an Outbox asked for it.
type StintOver struct{ Outside }

func (*StintOver) MessageKind() Kind { return KindStintOver }

// LingerOver tells the sequencer that it has waited long enough for sequences that were expected
// back. Shell to sequencer, after an Outbox asked for it.
type LingerOver struct {
	Outside
	Round uint64
}

func (*LingerOver) MessageKind() Kind { return KindLingerOver }

func (m *LingerOver) spend(s *Spent) {
	*m = LingerOver{}
	s.lingers.put(m)
}
