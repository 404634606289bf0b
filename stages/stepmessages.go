package stages

// BeginLayer starts one layer of a step, or, where the device routes by itself, several. Sequencer
// to dispatch and, where the router chooses the experts, to it, which may predict.
type BeginLayer struct {
	Step
	More int // following layers that begin with it
}

func (*BeginLayer) MessageKind() Kind { return KindBeginLayer }

func (m *BeginLayer) spend(s *Spent) {
	*m = BeginLayer{}
	s.begins.put(m)
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

func (*PrefetchExperts) MessageKind() Kind { return KindPrefetchExperts }
func (m *PrefetchExperts) spend(s *Spent) {
	*m = PrefetchExperts{Experts: m.Experts[:0], Chances: m.Chances[:0]}
	s.prefetch.put(m)
}

// PicksReady carries what the device has chosen for a layer. Dispatch to router.
type PicksReady struct {
	Step
	Picks   []int32   // [rows, TopK], see gpu.Route; passes to the router
	Weights []float32 // likewise
	// [rows, hidden], what the experts are applied to, for expert hosts; empty without any. It
	// passes on.
	Inputs []float32
}

func (*PicksReady) MessageKind() Kind { return KindPicksReady }

func (m *PicksReady) spend(s *Spent) {
	*m = PicksReady{Picks: m.Picks[:0], Weights: m.Weights[:0], Inputs: m.Inputs[:0]}
	s.picks.put(m)
}

// ScoresAhead carries what the routers of the next layers make of this layer's router input, to
// predict what those layers will pick. Dispatch to router, before the next layer's PicksReady; it
// is left out if that would come first.
type ScoresAhead struct {
	Step
	Scores []float32 // [layers ahead, rows, experts]; passes to the router
}

func (*ScoresAhead) MessageKind() Kind { return KindScoresAhead }

func (m *ScoresAhead) spend(s *Spent) {
	*m = ScoresAhead{Scores: m.Scores[:0]}
	s.aheads.put(m)
}

// LayerRouted carries a layer's plan. Router to expert-IO.
type LayerRouted struct {
	Step
	Plan *RoutePlan // shared, read-only
}

func (*LayerRouted) MessageKind() Kind { return KindLayerRouted }

func (m *LayerRouted) spend(s *Spent) {
	*m = LayerRouted{}
	s.routed.put(m)
}

// ExpertsRead reports reads that have ended: each as soon as it has, so that its expert need not
// wait for the others of its group. Read pool to expert-IO. The slots' bytes pass back.
type ExpertsRead struct {
	Step        // as given in ReadGroup
	Results     []ReadResult
	Speculative bool // as given in ReadGroup
}

func (*ExpertsRead) MessageKind() Kind { return KindExpertsRead }

// ReadResult is the end of one read. Its times are on the engine's clock.
type ReadResult struct {
	Slot     SlotID
	Gen      uint32 // the slot's generation when the read was started
	FromHost bool   // the record was in the host's memory already, and did not come from the disk
	Err      error
	BeganNS  int64 // a worker took it; 0 if none did, as where another read brought the record
	EndedNS  int64 // the record was in memory, or failed; in the host's, where slots lie elsewhere
	PlacedNS int64 // the record was in its slot; 0 after an error
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

func (*ReadOverdue) MessageKind() Kind { return KindReadOverdue }

// ExpertsAnswered is what an expert host says to an ask, or what became of it: some of its uses, or
// an error for all that were not answered before. An ask that is over is answered in vain. Remote
// to expert-IO.
type ExpertsAnswered struct {
	Outside
	Ask  uint64
	Uses []AnsweredUse // their Rows pass on
	// Summed means that Uses are all of the ask, and good only together: of the picks that a row
	// has among them one has the sum of all, divided by its weight, and the others zeros.
	Summed bool
	Err    error
	// WaitedNS, ReadNS and ComputedNS are what the host says of these uses: how long they waited
	// for their turn, then for its disk, and then were computed.
	WaitedNS, ReadNS, ComputedNS int64
}

func (*ExpertsAnswered) MessageKind() Kind { return KindExpertsAnswered }

// AskOverdue says that an answer is later than nearly all answers of its host are. The host still
// answers. Remote to expert-IO.
type AskOverdue struct {
	Outside
	Ask uint64
}

func (*AskOverdue) MessageKind() Kind { return KindAskOverdue }

// AnsweredUse is the output of one expert for the rows that picked it.
type AnsweredUse struct {
	Use  int32     // index into Plan.Uses
	Rows []float32 // [len(Plan.Uses[Use].Pairs), hidden]
}

// HostChanged says what may be asked of an expert host from now on. Remote to expert-IO.
type HostChanged struct {
	Outside
	Host    int // as in Ask
	Experts int // for how many it has memory; 0: it cannot be asked
	Asks    int // how many it takes at once
	// Gone means that it has left for good: what is known of it is forgotten, and its number may
	// become that of another host.
	Gone bool
	// What was measured of the network to it, in nanoseconds: a round trip, and what a row takes
	// there and an output back beyond that. RowNS is 0 if that is not known.
	DelayNS, RowNS float64
}

func (*HostChanged) MessageKind() Kind { return KindHostChanged }

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
	// Answers are uses that expert hosts have computed. They have no slots.
	Answers []AnsweredUse
	// Losses, with Last, names the sequences whose rows the layer could not be computed for.
	// Shared, read-only.
	Losses []Loss
}

func (*WaveResident) MessageKind() Kind { return KindWaveResident }

func (m *WaveResident) spend(s *Spent) {
	clear(m.Answers)
	*m = WaveResident{Uses: m.Uses[:0], Answers: m.Answers[:0]}
	s.residents.put(m)
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

func (*WaveSubmitted) MessageKind() Kind { return KindWaveSubmitted }

func (m *WaveSubmitted) spend(s *Spent) {
	*m = WaveSubmitted{}
	s.waves.put(m)
}

// LayerSubmitted says that all commands of a layer are with the device. Dispatch to sequencer.
type LayerSubmitted struct {
	Step
	More   int    // following layers whose commands are too
	Losses []Loss // sequences whose rows it could not be computed for; shared, read-only
}

func (*LayerSubmitted) MessageKind() Kind { return KindLayerSubmitted }

func (m *LayerSubmitted) spend(s *Spent) {
	*m = LayerSubmitted{}
	s.submitted.put(m)
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

func (*TicketDone) MessageKind() Kind { return KindTicketDone }

func (m *TicketDone) spend(s *Spent) {
	*m = TicketDone{}
	s.tickets.put(m)
}

// SlotsReleased sends a wave's slots home. Combine to expert-IO, or dispatch where the step has
// failed.
type SlotsReleased struct {
	Step
	Wave  int
	Slots []SlotID
}

func (*SlotsReleased) MessageKind() Kind { return KindSlotsReleased }

func (m *SlotsReleased) spend(s *Spent) {
	*m = SlotsReleased{}
	s.releases.put(m)
}

// LayerRetired says that the device has finished a layer. Combine to sequencer.
type LayerRetired struct {
	Step
	More int // following layers that it has finished too
	Spell
}

func (*LayerRetired) MessageKind() Kind { return KindLayerRetired }

func (m *LayerRetired) spend(s *Spent) {
	*m = LayerRetired{}
	s.retired.put(m)
}

// StepRouted carries what the device has routed by itself in a step. Dispatch to router, which
// counts it. Nobody waits for that, so the sequencer may use the batch's memory again before the
// message arrives: unless the step is traced, Step.Batch is the message's own copy.
type StepRouted struct {
	Step
	batch Batch // the copy
	// [layers with routed experts, rows, TopK]; negative in rows whose scores were not finite
	Picks []int32
	// Near says which experts were near when the device computed the step; empty: all.
	Near NearSets
}

func (*StepRouted) MessageKind() Kind { return KindStepRouted }

func (m *StepRouted) spend(s *Spent) {
	batch := Batch{Rows: m.batch.Rows[:0], Segments: m.batch.Segments[:0]}
	*m = StepRouted{Picks: m.Picks[:0], Near: m.Near[:0], batch: batch}
	s.routings.put(m)
}

// Take exchanges m's content with that of another message, so that a stage may keep it for longer
// than it handles the message.
func (m *StepRouted) Take(from *StepRouted) {
	own := from.Batch == &from.batch
	m.Step, m.Picks, from.Picks, m.batch, from.batch = from.Step, from.Picks, m.Picks, from.batch, m.batch
	m.Near, from.Near = from.Near, m.Near
	if own {
		m.Batch = &m.batch
	}
}

// CountPicks has the router count a piece of what came with the last StepRouted. Router to router:
// other messages, such as those of callers, are handled between the pieces.
type CountPicks struct{ Outside }

func (*CountPicks) MessageKind() Kind { return KindCountPicks }

func (m *CountPicks) spend(s *Spent) {
	*m = CountPicks{}
	s.counts.put(m)
}

// ReadLogits asks for the end of a step: final norm, head, and what the batch wants collected.
// Sequencer to dispatch, after the last LayerSubmitted.
type ReadLogits struct{ Step }

func (*ReadLogits) MessageKind() Kind { return KindReadLogits }

func (m *ReadLogits) spend(s *Spent) {
	*m = ReadLogits{}
	s.reads.put(m)
}

// LogitsReady answers ReadLogits. Dispatch to sequencer. The slices pass on.
type LogitsReady struct {
	Step
	Logits  []float32 // [rows with Logits and without Best set, vocab]
	Largest Largest   // [rows with Best set, BestOf(vocab)]
	Dump    []Tensor  // what the batch wants beside logits, in the order of Batch.Wants
	// sequences whose rows could not be computed, where that is found at the step's end; shared,
	// read-only
	Losses []Loss
	Spell
}

func (*LogitsReady) MessageKind() Kind { return KindLogitsReady }

// StepFailed says that a step cannot go on for any of its sequences. Any stage to sequencer. Layer
// is where it failed.
type StepFailed struct {
	Step
	Stage StageID
	Err   error
	// Untouched means that no state of a sequence has changed: nothing was submitted.
	Untouched bool
}

func (*StepFailed) MessageKind() Kind { return KindStepFailed }

// DrainStep empties the pipeline of a failed step. It travels from the sequencer to dispatch,
// router, expert-IO, dispatch and combine, after everything that they sent before, and ends as
// StepDrained.
type DrainStep struct {
	Step
	Hop int // 0 on the way to dispatch first, 1 when it comes there again
}

func (*DrainStep) MessageKind() Kind { return KindDrainStep }

// StepDrained says that nothing of a failed step is in flight any more. Combine to sequencer.
type StepDrained struct {
	Step
	Spell
}

func (*StepDrained) MessageKind() Kind { return KindStepDrained }
