package record

// Handled is a message that a stage has handled.
type Handled struct {
	Step    uint64 // 0: about no step
	SentNS  int64
	BeganNS int64 // when the stage took it
	EndedNS int64 // when the shell had done what the stage asked for
	Layer   int32 // -1: about no layer
	Wave    int32 // of the layer; -1: about no wave
	More    int32 // further layers that the message stands for, on a device that routes by itself
	Stage   uint8 // index into Meta.Stages
	Message uint8 // index into Meta.Messages
	_       [2]uint8
}

// Step is a step that the sequencer formed. What became of it is in StepEnded.
type Step struct {
	Step    uint64
	BeganNS int64
	Rows    int32
	Decode  int32 // of Rows: those that are a sequence's next token
	Urgent  uint8 // 1: the device and the reads let it go first
	Lane    uint8 // which set of scratch buffers it uses
	_       [6]uint8
}

// StepEnded is the end of a step.
type StepEnded struct {
	Step    uint64
	EndedNS int64
	Failed  uint8 // 1: it was given up
	_       [7]uint8
}

// Segment is a run of rows of one request inside a step.
type Segment struct {
	Step    uint64
	Request uint64
	Seq     uint64
	Pos     int32 // of the first row in its sequence
	Row     int32 // the first row's place in the step
	Rows    int32
	_       [4]uint8
	// Of the request: when it came, and the caller's span if that is sampled; zero: none.
	ArrivedNS int64
	TraceID   [16]byte
	SpanID    [8]byte
}

// Request is a request for rows (stages.EvalChunk) that has ended. One that generates text is many
// of these, a token each, after one for its prompt.
type Request struct {
	Request   uint64
	Seq       uint64
	ArrivedNS int64
	BeganNS   int64 // its first step; 0 if there was none
	EndedNS   int64
	Pos       int32 // where it began in its sequence
	Rows      int32 // that it asked for
	Outcome   Outcome
	_         [7]uint8
	TraceID   [16]byte // the caller's span, if it is sampled; zero: none
	SpanID    [8]byte
	// What it cost, as stages.Cost has it: picks of experts that were in memory, being read, or
	// read because of it; bytes of them; its share of the time.
	Hit, Late, Missed                           int32
	_                                           [4]uint8
	SlotBytes, HostBytes, DiskBytes, AheadBytes int64
	DeviceNS, DiskWaitNS                        int64
}

// Outcome says how a request ended.
type Outcome uint8

// The outcomes.
const (
	Answered Outcome = iota
	Cancelled
	Refused
	Failed
)

// Wait is a time that something stood still for a reason that lies inside the engine.
type Wait struct {
	Step    uint64 // that waited; 0 if it was no step yet
	Request uint64 // that waited, if there was no step yet; 0: several, or the step's
	For     uint64 // the step that was in the way; 0: none, or several
	BeganNS int64
	EndedNS int64
	Layer   int32 // -1: about no layer
	Wave    int32 // -1: about no wave
	Reason  Reason
	_       [7]uint8
}

// Reason says what was waited for.
type Reason uint8

// The reasons.
const (
	// LayerCredit: the next layer waited until an earlier one of the ring had retired.
	LayerCredit Reason = iota
	// WaveCredit: a wave whose experts were in memory waited for a place in the ring.
	WaveCredit
	// Room: experts that were wanted waited for slots that others used.
	Room
	// Lane: rows that could be evaluated waited until the steps under way let another one begin.
	Lane
	// Turn: the step waited until the other kind of step had had its share of the device. If it had
	// no layers left it was computed, and was not handed over yet.
	Turn
	// Company: a step was not formed yet, since sequences that decoded a moment ago might come
	// (lingering).
	Company
	// Memory: a request waited for memory for its state.
	Memory
	// ReadCredit: experts that were wanted were not asked for yet, since enough reads were under
	// way, or urgent ones went first.
	ReadCredit
	// StateReady: a request waited until its state was made, or brought back from where it was
	// parked.
	StateReady
	// NumReasons is how many there are.
	NumReasons int = iota
)

// Use is an expert that a layer's plan uses, when it was given its slot. Where the device routes by
// itself it is known at the end of the step.
type Use struct {
	Step   uint64
	AtNS   int64  // the slot was given, and a read begun or found if it was not in memory
	Hint   uint64 // of the guess that brought it; 0: none, or an earlier use
	Layer  int32
	Expert int32
	Slot   int32 // -1: it is mapped, or the device has all
	Rows   int32 // of the step, that picked it
	Found  Found
	_      [7]uint8
}

// Found says where the expert was.
type Found uint8

// The places.
const (
	Resident Found = iota // in its slot
	Late                  // being read on a guess, or by a warm start, and not wanted until now
	Missing               // neither: a read began because of it
	Shared                // being read for another step that wants it
	Away                  // in none of these: an expert host has computed the use
	Far                   // in the host's memory, where the device read it over the bus
)

// Read is a read of one expert's record that has ended.
type Read struct {
	Step     uint64 // that asked; 0: none, as for a warm start
	Hint     uint64 // of the guess that asked; 0: it was asked for on demand
	AskedNS  int64  // the stage asked
	BeganNS  int64  // a worker took it; 0 if no worker did
	EndedNS  int64  // the bytes were in memory; of a device with memory of its own, in the host's
	PlacedNS int64  // the bytes were in the slot
	WantedNS int64  // somebody came to need it; AskedNS on demand, 0: nobody has
	Bytes    int64  // 0 if it failed
	Layer    int32
	Expert   int32
	Slot     int32
	Tier     Tier
	Urgent   uint8 // 1: it went before reads that are not
	Failed   uint8 // 1
	Recalled uint8 // 1: it failed because nobody needed it any more, and it had not begun
}

// Answer is what an expert host has said to an ask for some uses of a layer: the outputs of all or
// some of them, or that there are no more to come. Hosts tell durations and no times, since their
// clocks are not this machine's; what they do not tell of EndedNS − AskedNS is the network and the
// programs at both ends of it.
type Answer struct {
	Step    uint64
	Ask     uint64
	AskedNS int64
	EndedNS int64 // the answer was here, or there was to be none
	// Of the host, for these uses: until their turn came, then until the experts were in its
	// memory, then until they were computed.
	WaitedNS   int64
	ReadNS     int64
	ComputedNS int64
	Layer      int32
	Host       int32 // index into Engine.Hosts of the meta
	Uses       int32 // that are answered; where it failed, that are not
	Failed     uint8 // 1: the uses went another way
	_          [3]uint8
}

// NetworkNS returns how much of the time until the answer the host does not tell of.
func (a *Answer) NetworkNS() int64 {
	return max(0, a.EndedNS-a.AskedNS-a.WaitedNS-a.ReadNS-a.ComputedNS)
}

// Picks is experts of one row in one layer, in order: those that it picked, heaviest first, or
// those that the router of the layer ranked first when it was applied to the router input of an
// earlier layer.
// Steps of few rows have them of all rows, others only of the last row of each segment.
type Picks struct {
	Step    uint64
	Layer   int32
	Row     int32 // of the step
	Ahead   uint8 // 0: picked; 1 or 2: ranked, that many layers before
	First   uint8 // the place of Experts[0]; a row with many has several records
	N       uint8 // of Experts
	_       uint8
	Experts [10]int16
}

// Tier says where a record came from.
type Tier uint8

// The tiers.
const (
	FromDisk Tier = iota
	FromHost      // the host's memory, to a device with memory of its own
)

// Guess is an expert that a hint named and that was not in memory.
type Guess struct {
	Hint    uint64
	Step    uint64 // in which it was made
	AtNS    int64
	Layer   int32 // that the expert belongs to
	Ahead   int32 // layers from the one that the step had come to
	Expert  int32
	Chance  float32 // that it would be wanted, by experience
	Verdict Verdict
	_       [7]uint8
}

// Verdict says what became of a guess.
type Verdict uint8

// The verdicts.
const (
	Issued   Verdict = iota // it was read
	Dropped                 // no slot was spare
	Declined                // chance or time spoke against it
	Skipped                 // the layer's speculation was paused
)

// Eviction is an expert that lost its slot.
type Eviction struct {
	AtNS   int64
	Layer  int32
	Expert int32
	Slot   int32
	Unused uint8 // 1: it was read on a guess, and nobody used it
	_      [3]uint8
}

// Submission is commands that the device has worked on, or, where it told of each layer of several,
// the part of one layer: then the first part begins with the commands, and each other one where the
// one before it ends.
type Submission struct {
	Step        uint64 // 0: none, as for copies of states
	SubmittedNS int64
	BeganNS     int64 // on the engine's clock, as the queue tells; 0 if it does not
	EndedNS     int64
	DeviceNS    int64 // that it took by the device's own clock
	PausedNS    int64 // of EndedNS − BeganNS: urgent work ran amid it
	OverlapNS   int64 // of the rest: experts were being read meanwhile
	// StarvedNS is for how long before BeganNS, and after what the device did before, it had
	// nothing to do because a step waited for experts.
	StarvedNS int64
	Layer     int32 // the first; -1: of no layer
	More      int32 // further layers
	Wave      int32 // -1: what is not a wave of experts
	Rows      int32 // of the step
	Uses      int32 // of a wave: experts
	Picks     int32 // of a wave: picks of them, by all rows
	Urgent    uint8 // 1
	Part      Part
	Device    uint8 // that did it, of several
	_         [5]uint8
}

// Part says what of a step was submitted.
type Part uint8

// The parts.
const (
	Mix          Part = iota // a layer's first half, up to its scores or picks
	Experts                  // a wave
	Layers                   // whole layers: dense ones, and all where the device routes by itself
	Head                     // the final norm and logits
	State                    // copies outside of steps: of states and, at the start, of weights
	Ahead                    // the routers of the next layers, applied to this layer's router input
	SharedExpert             // of a layer, where it has a submission of its own
	// NumParts is how many there are.
	NumParts int = iota
)

// Level is how full the engine was, noted when a step ends, once if several do by one message.
type Level struct {
	AtNS         int64
	ReadBytes    int64 // asked for and not ended
	SlotsUsed    int32
	Slots        int32
	ReadsQueued  int32 // that wait for a worker
	ReadsRunning int32
	Waves        int32 // in the deferred ring
	Requests     int32 // that wait for a step or for memory
}
