// Package stages is the vocabulary of the pipeline: Step and Batch, the messages that the five
// stages exchange, the RoutePlan, slots, the Outbox that a stage fills, the errors a caller sees,
// and the figures a stage counts. It holds no logic beyond errors, differences of figures, and
// reuse of memory.
//
// A stage is a pure state machine in a package of its own: sequencer, router, expertio, dispatch,
// combine. Its Step method takes one message and writes into an Outbox what must happen next. It
// starts no goroutine, reads no clock, takes no lock and does no I/O. Package actors/runtime runs
// the stages for real: its shell performs the outbox, has experts read and waits for the device.
// Package stages/stagetest runs the same stages in one goroutine, under any order of delivery.
//
// A message is sent by pointer and is not written to after it is sent, until it has been handled
// (see Spent). Send gives away: the sender forgets every slice in the message, unless the field's
// comment says "shared, read-only". Messages between one sender and one receiver keep their order.
// Nothing else does, so a stage keys what it receives by step and layer.
//
// # Glossary
//
// Each word has one meaning in the pipeline, its comments, its logs and the documentation. (GPU
// kernels for attention cut positions into chunks and spans of their own; see shaders/cache.metal.)
// docs/figures.md defines the figures that the program prints.
//
// What is computed:
//
//   - sequence: one history of tokens, with the keys, values and recurrent state computed from it.
//   - position: the index of a token in its sequence.
//   - row: one token of one sequence that is being evaluated.
//   - chunk: the tokens of one sequence that a caller evaluates by one EvalChunk.
//   - step: the rows, of one sequence or of several, that pass through all layers together. A long
//     chunk takes several steps. ChunkRows of actors.Config bounds the rows of a step.
//   - batch: the rows of a step, as data. It is shared and read-only.
//   - segment: the rows of one chunk within a batch.
//   - lane: a set of scratch buffers. A step occupies one lane; there is one more than steps of
//     one kind, decoding or reading prompts, may be in flight.
//   - mixer: the part of a layer that looks at other positions: full, latent or linear attention.
//
// Which experts compute it:
//
//   - scores: the router's raw outputs, one for each expert. Logits are scores of tokens only.
//   - pick: one of the TopK experts that a layer's router chooses for a row.
//   - plan: the picks of a step in one layer, sorted by expert (RoutePlan).
//   - use: one expert of a plan, with all the rows that picked it.
//   - hint: experts that a layer will probably need, each with a chance (PrefetchExperts).
//   - resident: in memory. A resident engine has every expert in memory when it opens, and its
//     device routes by itself. In any other engine experts are streamed: read into slots.
//
// Where experts are:
//
//   - record: the packed weights of one expert, as they lie in a file and in a slot.
//   - tier: the cache of records in the host's memory, between the disk and the slots of a device
//     with memory of its own (package stages/tier).
//   - slot: device memory for one record. It is free, being filled, resident or in use.
//   - near, far: in a resident engine whose experts do not fit into the device's own memory, with a
//     slot there or without one. A far expert is read where it lies, in the host's memory.
//   - generation: counts how often a slot was given to another expert. It exposes a stale read.
//   - demand read, speculative read: a read for a pick, a read for a hint. Those of steps that
//     decode are urgent (Rank).
//   - hit, miss: a use that finds its expert in a slot or on its way there; a use that does not.
//   - host: another process, on this machine or elsewhere, that computes uses for this engine
//     (actors/remote/host). Beside a device with memory of its own it is this machine.
//   - question: some uses of a plan that a host is to compute (Ask). They are away meanwhile.
//   - placement: who owns which expert, this machine or a host, and which host has a copy
//     (stages/expertio/placement). A step goes by the one that held when it began. Its number is
//     the epoch.
//   - load: the uses of one plan on their way from expert-IO to dispatch.
//   - wave: those uses of a load that one submission computes.
//   - account: what a request was given and what that cost. What no request asked for is nobody's.
//
// How the device is driven:
//
//   - encode, submit: to record operations in a gpu.Commands; to hand that to the device's queue.
//   - ticket: the completion of one submission.
//   - retire: to give back, in order of submission, what a finished wave or layer held.
//   - ring: the waves that are submitted and not retired.
//   - credit: the right to add one more. RingDepth of actors.Config is their number, counted apart
//     for layers (sequencer) and for waves (expert-IO), and there for decode steps and others; in
//     the sequencer only if the device preempts. Credits bound the pipeline; the capacity of
//     mailboxes does not.
//   - urgent: said of a submission that the device may run before and amid others (gpu.Queue):
//     decode steps, and copies of states. A device that does so preempts.
//
// What is kept of a sequence:
//
//   - page: room for the keys and values of a fixed number of positions, in all layers.
//   - grant: a sequence's right to memory up to a position that its caller has declared.
//   - ask: a request that waits for memory.
//   - frozen state: a state that no step changes: a list of pages and a copy of the recurrent
//     state.
//   - checkpoint: a frozen state that a caller keeps under a position of its sequence.
//   - remembered: said of a frozen state that belongs to no sequence, and serves any text that
//     begins alike.
//   - draft: a state that a caller fills, to be put in a sequence's place.
//   - snapshot: a state as a file.
//   - parked: said of a state that lies with the parking store, in host memory or in a file, and
//     not in the device's memory. Whatever needs the state has it brought back first.
//   - stint: the time for which a text that goes on keeps its memory although others wait for it.
//
// When things go wrong:
//
//   - lost: said of a sequence whose rows a step cannot compute, while the step goes on for others.
//   - drained: said of a failed step when nothing of it is in flight any more.
//   - poisoned: said of a sequence whose layers may stand at different lengths. It refuses
//     everything but what replaces its state.
//
// How it is observed:
//
//   - log: the last facts that stages, shells and the meter have noted (package tracing/record).
//   - record, where it is not an expert's: a note of what an engine did (package tracing/record).
//   - span, trace: as in OpenTelemetry, and nothing else.
//   - message log: the messages of a run, one a line, as in stagetest/testdata.
//   - script: messages in and a stage's answers out, as in the testdata folder of each stage.
//
// # One decoded token
//
// This is the walk of a token through a streamed engine. The file stagetest/testdata/streamed.txt
// logs every message of it, for a model with two layers.
//
//  1. A caller sends EvalChunk with one token. The sequencer checks the token, the sequence's
//     length and health, and the room for keys and values. Then it forms a step of this row and of
//     the rows that other sequences have ready.
//  2. When it has a credit, the sequencer sends BeginLayer to router and dispatch.
//  3. The router knows what the row before picked. It may send hints to expert-IO
//     (PrefetchExperts), which starts speculative reads if they are worth their time.
//  4. Dispatch submits the layer's first half: mixer, router, choice of experts. It submits two
//     more pieces of work that need no routed expert: the routers of the next layers, applied to
//     this layer's input, and the shared expert. It does not wait for any of them.
//  5. The device finishes the first half (TicketDone). Dispatch sends PicksReady to the router, and
//     ScoresAhead when the routers of the next layers are done.
//  6. The router sorts the picks by expert and sends LayerRouted, with the plan, to expert-IO. It
//     makes hints of ScoresAhead.
//  7. Expert-IO finds a slot for each use. An expert that is in memory is pinned. For any other it
//     evicts the expert that is expected to wait longest for its next use, and asks for a read. The
//     end of each read comes back as an ExpertsRead of its own.
//  8. When it has a credit, expert-IO sends WaveResident: with all uses if they are in memory, and
//     otherwise with those that are, if they fill a wave or the device has no experts to compute.
//  9. Dispatch submits the wave's experts. With the last wave it also submits the sum of all picks,
//     the residual, and the next layer's input norm. It sends WaveSubmitted, with the slots, to
//     combine and, after the last wave, LayerSubmitted to the sequencer.
//  10. The sequencer begins the next layer (2), while the device still computes this one.
//  11. The device finishes a wave (TicketDone). Combine retires waves in order of submission: it
//     sends the slots home (SlotsReleased) and, after a layer's last wave, LayerRetired to the
//     sequencer. That gives back the credits.
//  12. After the last layer the sequencer sends ReadLogits. Dispatch submits the final norm and the
//     head, and answers LogitsReady.
//  13. When every layer is retired and the logits are there, the sequencer adds the row to its
//     sequence and answers ChunkEvaluated. Choosing a token is the caller's business.
//
// In a resident engine (stagetest/testdata/resident.txt) the host has no part in a layer. Points 3
// to 9 are one submission: mixer, router, choice, experts and sum. Router and expert-IO get no
// message, a wave carries no slots, and one BeginLayer begins several layers, which share a credit
// (BeginLayer.More). The picks come down with the logits and go to the router for its figures
// (StepRouted), which counts them piece by piece (CountPicks). A dense layer is one submission in
// any engine. Where experts are far, too, expert-IO hears what was used (ExpertsUsed) and chooses
// which experts have slots: it has them copied there as if they were read, and dispatch replaces
// their entries in the device's tables (MoveExperts). A slot takes another expert when all that was
// submitted before its old one left is done (SlotsVacated). No step waits for any of that.
//
// # A prompt
//
// A prompt is a chunk of many rows. It takes the same way, in steps of at most ChunkRows. While it
// is read, sequences that decode have steps of their own. The device runs these amid the prompt's,
// if it can; otherwise the two kinds take turns layer by layer (package schedule). The plan of a
// layer has each expert once, however many rows picked it, so a step reads an expert at most once.
// A plan may need more slots than there are: expert-IO sends what is in memory first, and reads the
// rest, forward in the file, into slots that come home. Dispatch gives each pick's output a place
// of its own, and the layer's end sums them in the order of the picks, so the bits do not depend on
// how waves were cut. Only the chunk's last row has logits, unless the caller wants more.
//
// # Where an expert's bytes go
//
// The read is asked for in stages/expertio (assignLoad in loads.go) and travels in Outbox.Reads.
// Package actors/expertmem (reads.go) gives it to io/readpool, whose worker calls ReadExpert of
// io/expertfile with the slot's memory (slots.go). On a device with memory of its own the record
// goes through host memory and is uploaded from there: package stages/tier decides, slotRead.upload
// (reads.go) does it. WaveResident names the slot. Dispatch turns it into pointers to the record's
// matrices (waveResident, expertTable) and submits a gpu.Experts. The device multiplies: gpu/host
// from runExperts (experts.go) by multiply (matmul.go) and mulPanels (panels.go) to the assembly in
// panels_*.s; NVIDIA GPUs from sm_80 on by gpu/cuda/override/limbs_experts.cu, where weights are
// affine codes; all else by shaders/experts.metal. Package actors lists the way function by
// function, with who owns the bytes.
//
// # Messages
//
// Each line says who sends a message to whom, and what passes hands with it. Commands are in the
// imperative, facts in the past participle. A caller is whoever uses the engine; the shell, the
// engine and the read pool are those of package actors and of the packages below it.
//
// Evaluation:
//
//	EvalChunk          caller -> sequencer     tokens of a sequence; Tokens and Spare pass on
//	ChunkEvaluated     sequencer -> caller     logits and what else was wanted; all pass on
//	CancelEval         caller -> sequencer     which request, and why
//	Withdraw           caller -> sequencer     which request need not wait for memory any more, why
//	BeginLayer         sequencer -> dispatch,  the step, and how many layers begin together
//	                   router
//	PrefetchExperts    router -> expert-IO     a hint: experts and their chances
//	PicksReady         dispatch -> router      picks and weights, which pass on
//	ScoresAhead        dispatch -> router      scores of the next layers' routers, which pass on
//	LayerRouted        router -> expert-IO     the plan, shared and read-only
//	ExpertsRead        read pool -> expert-IO  the end of one read; the slot's bytes come back
//	ReadOverdue        read pool -> expert-IO  a read that does not end; its bytes stay away
//	ExpertsAnswered    remote -> expert-IO     what an expert host has computed; rows pass on
//	AskOverdue         remote -> expert-IO     an answer that is later than nearly all others
//	HostChanged        remote -> expert-IO     an expert host may be asked, or not any more
//	WaveResident       expert-IO -> dispatch   uses of a plan; their slots pass on
//	WaveSubmitted      dispatch -> combine     the ticket; slots and, at the end, the plan pass on
//	LayerSubmitted     dispatch -> sequencer   which layers, and whom they have lost
//	TicketDone         device -> dispatch,     the end of the submission that a stage awaits
//	                   combine
//	SlotsReleased      combine -> expert-IO    the slots come home; from dispatch if the step failed
//	LayerRetired       combine -> sequencer    which layers
//	StepRouted         dispatch -> router      resident only: all picks of a step, which pass on
//	CountPicks         router -> router        resident only: count the next piece of them
//	ExpertsUsed        router -> expert-IO     with far experts only: what a step has used
//	MoveExperts        expert-IO -> dispatch   who has come into a slot, and who is to leave one
//	SlotsVacated       dispatch -> expert-IO   slots that nothing reads any more; they come home
//	ReadLogits         sequencer -> dispatch   asks for the end of a step
//	LogitsReady        dispatch -> sequencer   logits and what else the batch wants; all pass on
//
// Failure, and the end:
//
//	StepFailed         any stage -> sequencer  which stage, why, and whether nothing was changed
//	DrainStep          sequencer -> dispatch -> router -> expert-IO -> dispatch -> combine
//	                                           follows what was sent for a failed step
//	StepDrained        combine -> sequencer    nothing of the step is in flight
//	Drain              engine -> sequencer     take nothing new; finish or cancel what runs
//	Drained            sequencer -> engine     no step is left
//	LingerOver         shell -> sequencer      a timer that Outbox.Linger asked for
//
// States of sequences. Every request has an answer:
//
//	OpenSequence       caller -> sequencer     a new sequence, empty (without memory) or like another
//	ResetSequence      caller -> sequencer     empties one
//	CloseSequence      caller -> sequencer     gives up one
//	TruncateSequence   caller -> sequencer     back to a position
//	KeepCheckpoint     caller -> sequencer     keeps the present state
//	RestoreCheckpoint  caller -> sequencer     back to a checkpoint
//	ForgetCheckpoint   caller -> sequencer     gives up a checkpoint
//	CapCheckpoints     caller -> sequencer     sets how many checkpoints a sequence keeps
//	ResumeSequence     caller -> sequencer     as much of a text as any state holds; Tokens pass on
//	ForgetTexts        caller -> sequencer     gives up all that is remembered
//	DescribeSequence   caller -> sequencer     asks where a sequence stands
//	SequenceDone       sequencer -> caller     answers all of these, AdoptState and ReleaseState
//	FreezeSequence     caller -> sequencer     a frozen state, to be read
//	FreezeText         caller -> sequencer     likewise, of what is known of a text
//	DraftState         caller -> sequencer     a draft for a sequence, to be filled
//	StateReady         sequencer -> caller     answers these; the right to read or fill passes on
//	AdoptState         caller -> sequencer     puts a draft in its sequence's place; Tokens pass on
//	ReleaseState       caller -> sequencer     a frozen state or a draft is not needed any more
//	CopyState          sequencer -> dispatch   which recurrent state becomes which
//	StateCopied        dispatch -> sequencer   the device has done so
//	DropState          sequencer -> dispatch   a recurrent state is not needed any more
//	ParkSequence       caller -> sequencer     move a state out of the device's memory
//	StintOver          shell -> sequencer      a timer that Outbox.Stint asked for
//	StateParked        shell -> sequencer      the parking store has a state
//	StateReturned      shell -> sequencer      a state is filled with what the parking store has
//	ForgetSequence     sequencer -> router     drop the predictions for a sequence
//
// Two packages have one more: dispatch has Exchange, by which a caller reads or fills a state that
// lies in a device's own memory, and expertio has shrinkOn, by which it gives up slots piece by
// piece.
//
// The engine:
//
//	CollectStats       caller -> sequencer -> router -> expert-IO -> dispatch -> combine -> caller
//	                                           each stage adds its figures; Stats pass along
//	ResizeSlots        anyone -> expert-IO     another number of slots
//	SlotsResized       expert-IO -> caller     how many there are now
//	DescribePredictions
//	                   caller -> router        which experts is a sequence's next row expected to pick?
//	PredictionsDescribed
//	                   router -> caller        the experts, each with a chance
//	ForgetExperts      anyone -> router -> expert-IO
//	                                           drop predictions and experts, to force misses
//	ExpertsForgotten   expert-IO -> caller     it is done
//	WarmSlots          engine, expert host -> expert-IO
//	                                           fill empty slots while the disk is idle
//
// # Adding a message
//
//   - Declare it in messages.go, stepmessages.go, statemessages.go or parkmessages.go, embedding
//     Step if it belongs to a step and Outside otherwise, with sender, receiver and ownership in
//     its comment. Below it come its methods: MessageKind; Ask, if callers send it; and spend, if
//     it is sent for every token. Name its kind in kinds.go, where it has two lines, and give it a
//     line in the list above. Tests name what is missing. Recordings know kinds by name, so a new
//     one may stand anywhere.
//   - If it is sent for every token, take its memory from Spent: a list and a constructor in
//     spent.go. If slices keep their memory, the test in spentlists_test.go must know (keeps).
//   - Send it, and add a case to the receiver's Core.Step, with a script in that stage's testdata.
//   - Messages keep their order between two stages only. One that belongs to a step, and takes a
//     way from stage to stage that no other does, can arrive after the step was drained: let
//     DrainStep take that way, too, or let the receiver drop it.
//   - If it moves slots or pages, tell watch.go of stagetest. If it belongs to the walk of a token,
//     -update rewrites the message logs. Scripts know it already, unless a field has a type that is
//     new to them (scriptparse.go).
//   - To see who else tells messages apart, look for one like yours: grep -rn stages.LayerRouted.
//     Among them are records, replays (tracing/whatif) and expert hosts.
//   - If it begins or ends a span, package tracing must read it (tree.go, parts.go).
package stages
