package stages

// ParkID names a state in the parking store, where states lie that have no place in the device's
// memory.
type ParkID uint64

// Park asks the parking store for something. It travels in an Outbox.
type Park struct {
	Do     ParkOp
	ID     ParkID
	Memory any     // of a state to be written or filled: as of StateCopied, until the answer
	Tokens []int32 // of its positions, as of SequenceDone; shared, read-only
}

// ParkOp is what the parking store is asked for.
type ParkOp uint8

// What it can do.
const (
	ParkWrite  ParkOp = iota + 1 // take a copy of a state; answered by StateParked
	ParkRead                     // fill a state with it, and keep it; answered by StateReturned
	ParkForget                   // give it up; not answered
)

// ParkSequence has a sequence's state written to the parking store and gives its memory back, until
// something needs it: the sequence is like any other, only that this takes longer. Caller to
// sequencer; answered by SequenceDone, with ErrBusy if something needed it at once.
type ParkSequence struct {
	Outside
	Seq    SeqID
	Caller Caller
}

func (*ParkSequence) MessageKind() Kind         { return KindParkSequence }
func (m *ParkSequence) Ask(from Caller) StageID { return asks(&m.Caller, from, Sequencer) }

// StateParked tells that the parking store has a state, or why not. Parking store to sequencer, who
// has the state's memory again.
type StateParked struct {
	Outside
	ID  ParkID
	Err error
}

func (*StateParked) MessageKind() Kind { return KindStateParked }

// StateReturned tells that a state was filled with what the parking store has, or why not. Parking
// store to sequencer, who has the state's memory again.
type StateReturned struct {
	Outside
	ID  ParkID
	Err error
}

func (*StateReturned) MessageKind() Kind { return KindStateReturned }
