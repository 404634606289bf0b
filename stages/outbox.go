package stages

import (
	"errors"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Ticket is the completion of work given to a device, as the pipeline sees it.
type Ticket interface {
	// OnDone calls f once, when the work is complete, with the error it ended with; see
	// gpu.Ticket.
	OnDone(f func(error))
	// DeviceNS returns how long the device worked on it, in nanoseconds; 0 before it is done. It
	// may be asked until OnDone's f has returned.
	DeviceNS() int64
}

// Outbox is what a stage wants done after one message. The shell does it in the order of the fields
// and empties the box. Slices keep their memory. The box also has what a stage notes its work with:
// the log of records and the time.
type Outbox struct {
	Frees   []SlotID // slots whose memory may go back to the system until the next read into them
	Reads   []ReadGroup
	Hurries []Hurry
	Recalls []Recall
	Asks    []Ask
	Shares  []HostShare
	Parks   []Park
	Awaits  []Await
	Sends   []Send
	Answers []Answer
	Notes   []Note // to be logged at debug level
	Linger  Linger
	Stint   int64 // if not 0, send StintOver after so many nanoseconds; it replaces an earlier Stint
	Served  int   // requests that waited for memory and have left the queue, for whatever reason
	Stepped bool  // a step has ended: whoever runs the stages notes how full they are (record.Level)
	spent   *Spent

	// Log is where stages note what they do and wait for, by Records. Whoever runs them sets it
	// once; nil keeps nothing.
	Log *record.Log
	// NowNS is when the stage took the message, on the engine's clock. Whoever runs the stages sets
	// it before each Step; 0 is an unknown time.
	NowNS int64
}

// nothing is a log that keeps nothing.
var nothing record.Log

// Records returns the log to write to. It is never nil.
func (o *Outbox) Records() *record.Log {
	if o.Log == nil {
		return &nothing
	}
	return o.Log
}

// Linger asks the shell for LingerOver with a Round, if that is not 0, at a time on the engine's
// clock.
type Linger struct {
	Round uint64
	AtNS  int64
}

// Note is a rare event that helps to explain a speed: a text, and keys with values as for a
// slog.Logger.
type Note struct {
	Text string
	Args []any
}

// Send is a message for another stage.
type Send struct {
	To  StageID
	Msg Message
}

// Answer is a message for a caller.
type Answer struct {
	To  Caller
	Msg Message
}

// Await asks for a TicketDone with this ID, for the stage whose outbox it is.
type Await struct {
	Step   Step
	ID     uint64
	Ticket Ticket
	After  Ticket // nil, or of earlier commands that must be done too; their error goes first
}

// ReadGroup asks for reads, each of which is answered by an ExpertsRead of its own.
type ReadGroup struct {
	Step  Step
	Reads []Read // the core's until the box is reset
	Rank  Rank
}

// Read asks for one expert's record to be read into a slot, whose bytes belong to the reader until
// the answer.
type Read struct {
	Slot          SlotID
	Gen           uint32
	Layer, Expert int
}

// Ask asks an expert host for the outputs of some uses of a plan, whose Inputs it needs. Each use
// is answered once by an ExpertsAnswered, or the rest of them by an error. It is a pure question:
// what a host does not answer, another one or this machine computes to the same bits.
type Ask struct {
	ID   uint64 // 1 or more, given once
	Host int
	Step Step
	// Epoch is that of the placement that the step goes by. A host refuses one that is older than
	// its last HostShare.
	Epoch uint32
	Plan  *RoutePlan // shared, read-only; the shell copies what it needs
	Uses  []int32    // of the plan, ascending; the core's
	// Hedge means that another host was asked for these uses before, and is late.
	Hedge bool
}

// HostShare tells an expert host what it owns or has copies of from now on. No ask of an earlier
// epoch follows.
type HostShare struct {
	Host  int
	Epoch uint32  // of the placement, 1 or more
	Keys  []int32 // layer·Experts+expert, those first that are used most; shared, read-only
}

// Hurry says that a read that has been asked for has come to have a higher rank: somebody waits for
// it by now.
type Hurry struct {
	Slot SlotID
	Gen  uint32
	Rank Rank
}

// Recall says that nobody needs a speculative read any more. If it has not begun it ends with
// ErrRecalled, which is no fault of the disk; otherwise it goes on.
type Recall struct {
	Slot SlotID
	Gen  uint32
}

// ErrRecalled ends a read that was recalled before it had begun.
var ErrRecalled = errors.New("nobody needs the read any more")

// Share makes the box take the memory of messages from s, which other boxes may have too.
func (o *Outbox) Share(s *Spent) { o.spent = s }

// Spent returns where the memory of messages comes from: what was shared, or the box's own.
func (o *Outbox) Spent() *Spent {
	if o.spent == nil {
		o.spent = new(Spent)
	}
	return o.spent
}

// Send adds a message for a stage.
func (o *Outbox) Send(to StageID, m Message) { o.Sends = append(o.Sends, Send{to, m}) }

// Answer adds a message for a caller.
func (o *Outbox) Answer(to Caller, m Message) { o.Answers = append(o.Answers, Answer{to, m}) }

// Reset empties the box.
func (o *Outbox) Reset() {
	clear(o.Reads)
	clear(o.Asks)
	clear(o.Shares)
	clear(o.Awaits)
	clear(o.Sends)
	clear(o.Parks)
	clear(o.Answers)
	clear(o.Notes)
	o.Frees, o.Reads, o.Awaits, o.Sends = o.Frees[:0], o.Reads[:0], o.Awaits[:0], o.Sends[:0]
	o.Hurries, o.Recalls, o.Asks, o.Shares, o.Parks = o.Hurries[:0], o.Recalls[:0], o.Asks[:0], o.Shares[:0], o.Parks[:0]
	o.Answers, o.Notes = o.Answers[:0], o.Notes[:0]
	o.Linger, o.Stint, o.Served, o.Stepped = Linger{}, 0, 0, false
}

// Leveled is a core, or what reads for one, that tells how full it is.
type Leveled interface {
	// Level writes what it knows into l, and leaves the rest.
	Level(l *record.Level)
}

// Core is a stage. Step handles one message; an error is a broken invariant of ours and stops the
// engine.
type Core interface {
	Step(in Message, out *Outbox) error
}
