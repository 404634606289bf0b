package tier

import "github.com/moeflux/moeflux-actor/stages"

// Event is one of the types in this file that have the method.
type Event interface{ event() }

// Ask asks for a read into a slot that no other read is filling.
type Ask struct {
	Read stages.Read
	Rank stages.Rank
}

// Hurry says that a read has come to have a higher rank. A read that has ended is not hurried any
// more.
type Hurry stages.Hurry

// Filled says that a Fill has ended. With an error the record's bytes are undefined.
type Filled struct {
	Slot stages.SlotID
	Err  error
}

// Overdue says that a Fill does not end. It may come again, or after the fill has ended.
type Overdue stages.ReadOverdue

// Uploaded says that an Upload has ended, or could not begin.
type Uploaded struct {
	Slot stages.SlotID
	Err  error
}

// Limit sets the most records that may be held. The first block stays whatever the limit is.
type Limit struct{ Records int }

// Pinned ends an Order to pin. After an error the core keeps the memory that it has, until the next
// Limit.
type Pinned struct{ Err error }

// Freed ends an Order to free.
type Freed struct{}

// Forget empties all records that are not in use.
type Forget struct{}

func (*Ask) event()      {}
func (*Hurry) event()    {}
func (*Filled) event()   {}
func (*Overdue) event()  {}
func (*Uploaded) event() {}
func (*Limit) event()    {}
func (*Pinned) event()   {}
func (*Freed) event()    {}
func (*Forget) event()   {}

// Effects is what must happen after one event. Those of one kind are in order. The shell empties
// it.
type Effects struct {
	Fills   []Fill
	Hurries []stages.Hurry // of fills that were asked for with a lower rank
	Uploads []Upload
	Overdue []stages.ReadOverdue
	Ended   []Ended
	Memory  Order
}

// Reset empties e and keeps its memory.
func (e *Effects) Reset() {
	clear(e.Overdue) // errors
	clear(e.Ended)
	*e = Effects{Fills: e.Fills[:0], Hurries: e.Hurries[:0], Uploads: e.Uploads[:0], Overdue: e.Overdue[:0], Ended: e.Ended[:0]}
}

// Record names room for one expert: its block, and its place there.
type Record struct{ Block, Index int32 }

// Fill asks for an expert to be read from the disk into a record. Filled answers it.
type Fill struct {
	Slot   stages.SlotID // whose read it is
	Record Record
	Rank   stages.Rank
}

// Upload asks for a record to be copied to a slot. Uploaded answers it. The record stays as it is
// until then.
type Upload struct {
	Slot   stages.SlotID
	Record Record
}

// Ended says that a read is over. The slot may be asked for again.
type Ended struct {
	Slot stages.SlotID
	From Source
	Err  error
}

// Source says where the bytes of a read came from.
type Source uint8

const (
	FromDisk   Source = iota // the read has filled a record
	FromHost                 // the record was here
	FromOthers               // another read was filling the record
)

// Order asks for memory, or gives it back.
type Order struct {
	Kind    OrderKind
	Block   int32 // the new block's number, or which one goes
	Records int   // of the block
}

// OrderKind says what an Order is.
type OrderKind uint8

const (
	NoOrder OrderKind = iota
	Pin               // Pinned answers it
	Free              // Freed answers it
)
