package stages

// Message is what stages exchange. Messages about a step embed Step; those of a caller name the
// sequence instead and have a nil Head.
//
// A message belongs to its receiver until it has been handled. Then its memory may become another
// message's (Spent), so a stage that needs something of it later makes a copy.
type Message interface{ Head() *Step }

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

// EvalChunk asks to evaluate tokens of one sequence from its present length on. Caller to
// sequencer. A sequence evaluates one chunk at a time. The answer is a ChunkEvaluated.
type EvalChunk struct {
	Outside
	Seq     SeqID
	Pos     Pos     // must be the sequence's length if it asserts any
	Tokens  []int32 // passes to the sequencer
	Logits  LogitsWanted
	Hidden  bool // answer with the hidden states
	Routing bool // answer with the routing
	Trace   TraceContext
	Request uint64 // identifies this request in CancelEval
	Caller  Caller
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

// ChunkEvaluated answers EvalChunk. Sequencer to caller. Everything passes to the caller. After an
// error Rows says how many tokens were evaluated and kept before it.
type ChunkEvaluated struct {
	Outside
	Seq  SeqID
	Pos  int // of the first token
	Rows int
	// [wanted rows, vocab]; with BestLogits [2, BestOf(vocab)]: the largest in descending order,
	// then the bits of their tokens
	Logits []float32
	// [layers+1, rows, hidden]; index i is before layer i, the last after all layers
	Hidden  []float32
	Picks   []int32   // [layers with routed experts, rows, TopK], heaviest first
	Weights []float32 // likewise
	Err     error
	Poison  error // why the sequence is unusable from now on, or nil
	// Unfinished means that the chunk was cancelled while its step goes on. The EvalChunk and its
	// Tokens stay with the sequencer.
	Unfinished bool
}

// CancelEval stops a chunk. Caller to sequencer. A chunk that is not being computed ends at once.
// One that is being computed ends between steps or, when all chunks of its step are cancelled,
// between layers. Its rows are taken back then; a sequence with recurrent state is poisoned
// instead. The chunk's caller gets the answer, with Cause.
type CancelEval struct {
	Outside
	Seq     SeqID
	Request uint64
	Cause   error
	// Now gives up the chunk whatever its step still waits for. The caller gets the answer at once,
	// with Unfinished, and what the step makes of the chunk's rows is not kept. The sequence stays
	// busy until the step ends.
	Now bool
}

// ForgetSequence tells the router to drop its predictions for a sequence. Sequencer to router.
type ForgetSequence struct {
	Outside
	Seq SeqID
}

// CollectStats gathers figures. It travels from the sequencer to router, expert-IO, dispatch and
// combine. Each adds its own, and combine's shell answers the caller with it. Stats passes along
// with the message.
type CollectStats struct {
	Outside
	Stats  *Stats
	Caller Caller
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

// SlotsResized answers ResizeSlots when there are no more slots than both bounds allow, or another
// ResizeSlots of the same kind has come. Expert-IO to caller.
type SlotsResized struct {
	Outside
	Slots int // the number of slots now
}

// ForgetExperts drops what is predicted and every expert that no step uses, so that the next picks
// of these experts are misses. It ends a warm start. Anybody to router, which forgets each
// sequence's last picks and passes the message on to expert-IO.
type ForgetExperts struct {
	Outside
	Caller Caller
}

// ExpertsForgotten answers ForgetExperts. It comes when every speculative read that was under way
// has ended, for its slot is the reader's until then. Expert-IO to caller.
type ExpertsForgotten struct {
	Outside
	Err error // ErrExpertsMapped, or nil
}

// DescribePredictions asks what the router knows of the next row of a sequence before that row is
// computed. Caller to router. The answer is a PredictionsDescribed.
type DescribePredictions struct {
	Outside
	Seq    SeqID
	Layer  int
	Caller Caller
}

// PredictionsDescribed answers DescribePredictions. Router to caller.
type PredictionsDescribed struct {
	Outside
	// the picks of the row before, heaviest first; none before the first row, or after
	// ForgetSequence or ForgetExperts
	Predictions []Prediction
	Err         error // a layer without a router
}

// Prediction is an expert that a row may pick.
type Prediction struct {
	Expert int32
	Chance float32 // by experience in this layer, 0 to 1
}

// WarmSlots lets expert-IO fill empty slots whenever the disk has nothing else to do: with the
// experts that earlier runs used most, and if there are slots for all, with all. Shell to
// expert-IO, once.
type WarmSlots struct{ Outside }

// Drain stops intake: from now on EvalChunk and OpenSequence are refused with ErrClosed, running
// chunks end as if cancelled, and when no chunk and no step is left the answer is Drained. Caller
// to sequencer.
type Drain struct {
	Outside
	Finish bool // running chunks are finished instead; a later Drain may cancel them
	Caller Caller
}

// Drained answers Drain: nothing is in flight any more. Sequencer to caller.
type Drained struct{ Outside }

// LingerOver tells the sequencer that it has waited long enough for sequences that were expected
// back. Shell to sequencer, after an Outbox asked for it.
type LingerOver struct {
	Outside
	Round uint64
}

// BeginLayer starts one layer of a step, or, where the device routes by itself, several. Sequencer
// to dispatch and, where the router chooses the experts, to it, which may predict.
type BeginLayer struct {
	Step
	More int // following layers that begin with it
}

// PrefetchExperts names experts that a layer will probably need. Router to expert-IO; a hint. A
// layer may get several, the later ones with more to go by.
type PrefetchExperts struct {
	// Layer is the layer that will need them: of this step or, if the step is past it, of the next
	// step of its sequences
	Step
	Ahead   int     // layers from the one that the step has come to
	Experts []int32 // the likeliest first, of equal ones the lower; without repeats
	// [len(Experts)] that at least one row picks the expert, above 0 and at most 1
	Chances []float32
}

// PicksReady carries what the device has chosen for a layer. Dispatch to router.
type PicksReady struct {
	Step
	Picks   []int32   // [rows, TopK], see gpu.Route; passes to the router
	Weights []float32 // likewise
}

// ScoresAhead carries what the routers of the next layers make of this layer's router input, to
// predict what those layers will pick. Dispatch to router, before the next layer's PicksReady; it
// is left out if that would come first.
type ScoresAhead struct {
	Step
	Scores []float32 // [layers ahead, rows, experts]; passes to the router
}

// LayerRouted carries a layer's plan. Router to expert-IO.
type LayerRouted struct {
	Step
	Plan *RoutePlan // shared, read-only
}

// ExpertsRead reports reads that have ended: each as soon as it has, so that its expert need not
// wait for the others of its group. Read pool to expert-IO. The slots' bytes pass back.
type ExpertsRead struct {
	Step        // as given in ReadGroup
	Results     []ReadResult
	Speculative bool // as given in ReadGroup
}

// ReadResult is the end of one read.
type ReadResult struct {
	Slot SlotID
	Gen  uint32 // the slot's generation when the read was started
	Err  error
}

// ReadOverdue reports a read that has not ended in time. The slot's bytes stay with the reader, who
// reports again if it takes longer still. ExpertsRead comes when it has ended. Read pool to
// expert-IO.
type ReadOverdue struct {
	Outside
	Slot SlotID
	Gen  uint32 // the slot's generation when the read was started
	Err  error
}

// WaveResident tells dispatch that some experts of a plan are in memory and are to be computed: a
// wave. Each use of a plan is in one wave; which, and how many there are, depends on what was in
// memory when. Expert-IO to dispatch. The slots pass to dispatch and come home in SlotsReleased.
type WaveResident struct {
	Step
	Plan    *RoutePlan // shared, read-only
	Wave    int        // counts the waves of the layer from 0
	Last    bool       // no further wave of this layer
	Settled bool       // every expert of the model is in memory: nothing need be predicted
	// indices into Plan.Uses, ascending; none if only lost uses were left for the last wave
	Uses  []int32
	Slots []SlotID // [len(Uses)]
	// Losses, with Last, names the sequences whose rows the layer could not be computed for.
	// Shared, read-only.
	Losses []Loss
}

// WaveSubmitted tells combine that a wave's commands are with the device. Dispatch to combine. The
// slots pass on.
type WaveSubmitted struct {
	Step
	Wave   int
	Last   bool
	Ticket Ticket
	After  Ticket // nil, or the ticket of earlier commands that the wave's build on
	Slots  []SlotID
	// with Last, unless the layer is dense or routed on the device: the plan passes on, to be given
	// back when the wave is done
	Plan *RoutePlan
	More int // following layers whose commands these are too
}

// LayerSubmitted says that all commands of a layer are with the device. Dispatch to sequencer.
type LayerSubmitted struct {
	Step
	More   int    // following layers whose commands are too
	Losses []Loss // sequences whose rows it could not be computed for; shared, read-only
}

// Loss is a sequence of a step for whose rows a layer could not be computed, while the step goes on
// for the others: an expert that only those rows want could not be read, or their router scores are
// not finite. What is computed for them from there on means nothing. A step that has lost all its
// sequences has failed.
type Loss struct {
	Seq SeqID
	Err *StepError
}

// TicketDone says that the device has finished submitted commands. Device to the stage that
// awaited it.
type TicketDone struct {
	Step            // as given in Await
	ID       uint64 // as given in Await
	Err      error
	DeviceNS int64
}

// SlotsReleased sends a wave's slots home. Combine to expert-IO, or dispatch where the step has
// failed.
type SlotsReleased struct {
	Step
	Wave  int
	Slots []SlotID
}

// LayerRetired says that the device has finished a layer. Combine to sequencer.
type LayerRetired struct {
	Step
	More int // following layers that it has finished too
}

// StepRouted carries what the device has routed by itself in a step. Dispatch to router, which
// counts it.
type StepRouted struct {
	Step
	// [layers with routed experts, rows, TopK]; negative in rows whose scores were not finite
	Picks []int32
}

// ReadLogits asks for the end of a step: final norm, head, and what the batch wants collected.
// Sequencer to dispatch, after the last LayerSubmitted.
type ReadLogits struct{ Step }

// LogitsReady answers ReadLogits. Dispatch to sequencer. The slices pass on.
type LogitsReady struct {
	Step
	// [rows with Logits set, Row.Width], one after the other; see ChunkEvaluated.Logits
	Logits  []float32
	Hidden  []float32 // [layers+1, rows, hidden], if the batch wants it
	Picks   []int32   // [layers with routed experts, rows, TopK], if the batch wants it
	Weights []float32
	// sequences whose rows could not be computed, where that is found at the step's end; shared,
	// read-only
	Losses []Loss
}

// StepFailed says that a step cannot go on for any of its sequences. Any stage to sequencer. Layer
// is where it failed.
type StepFailed struct {
	Step
	Stage StageID
	Err   error
	// Untouched means that no state of a sequence has changed: nothing was submitted.
	Untouched bool
}

// DrainStep empties the pipeline of a failed step. It travels from the sequencer to dispatch,
// router, expert-IO, dispatch and combine, after everything that they sent before, and ends as
// StepDrained.
type DrainStep struct {
	Step
	Hop int // 0 on the way to dispatch first, 1 when it comes there again
}

// StepDrained says that nothing of a failed step is in flight any more. Combine to sequencer.
type StepDrained struct{ Step }

// Outside heads the messages that belong to no step.
type Outside struct{}

// Head returns nil.
func (*Outside) Head() *Step { return nil }
