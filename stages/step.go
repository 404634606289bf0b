package stages

import (
	"fmt"
	"slices"
)

// SeqID names a sequence: one key-value and recurrent history.
type SeqID uint64

// State returns the name of the sequence's state.
func (s SeqID) State() StateID { return StateID(s) }

// StateID names a state: that of a sequence (positive, its SeqID) or a frozen one (negative). 0 is
// the empty state, which takes no memory.
type StateID int64

// Pos is a position that a caller may assert. The zero value asserts none; At makes the others.
type Pos struct {
	at       int
	asserted bool
}

// At asserts a position.
func At(pos int) Pos { return Pos{pos, true} }

// Holds reports whether n is the position that is asserted, or none is.
func (p Pos) Holds(n int) bool { return !p.asserted || p.at == n }

func (p Pos) String() string {
	if !p.asserted {
		return "any"
	}
	return fmt.Sprint(p.at)
}

// PageID names a page: room for the keys and values of a fixed number of positions. The sequencer
// says which state has which pages, dispatch where they lie.
type PageID int32

// PageCopy asks for a page to be copied before a step writes to it: others share the original. From
// and To are equal if there is nothing to copy.
type PageCopy struct{ From, To PageID }

// StepID numbers the steps of an engine from 1.
type StepID uint64

// SlotID names a slot: device memory that holds one expert's record.
type SlotID int32

// StageID names a stage: the address of a message inside the pipeline.
type StageID uint8

// The stages.
const (
	Sequencer StageID = iota
	Router
	ExpertIO
	Dispatch
	Combine
	NumStages int = iota
)

var stageNames = [NumStages]string{"sequencer", "router", "expert-io", "dispatch", "combine"}

func (s StageID) String() string {
	if int(s) < len(stageNames) {
		return stageNames[s]
	}
	return fmt.Sprintf("stage %d", uint8(s))
}

// Row is one token of one sequence that a step evaluates.
type Row struct {
	Seq    SeqID
	Pos    int32
	Token  int32
	Logits bool // the caller wants this row's logits
	Best   bool // with Logits: only the largest ones (Largest)
}

// Widths returns how many logits are wanted of some rows of a vocabulary: rows with all of them,
// and the largest ones of rows that want no more.
func Widths(rows []Row, vocab int) (all, largest int) {
	for i := range rows {
		switch r := &rows[i]; {
		case r.Logits && r.Best:
			largest += BestOf(vocab)
		case r.Logits:
			all += vocab
		}
	}
	return all, largest
}

// Segment is a run of rows of one sequence inside a batch, at consecutive positions.
type Segment struct {
	Seq       SeqID
	Row, Rows int // Batch.Rows[Row : Row+Rows]
	Pos       int // position of the first
	// The caller's chunk that the rows are part of: where it begins, and all its rows.
	ChunkPos, ChunkRows int
	Pages               []PageID // page p holds positions p·PageRows…, up to the last row's
	Copy                PageCopy // to be done first; Pages has To already
}

// SegmentOf returns the index of the segment that has a row.
func (b *Batch) SegmentOf(row int) int {
	i, _ := slices.BinarySearchFunc(b.Segments, row, func(g Segment, row int) int {
		switch {
		case g.Row+g.Rows <= row:
			return -1
		case g.Row > row:
			return 1
		}
		return 0
	})
	return i
}

// TraceContext is the caller's span, as W3C trace context has it. The zero value means "not
// traced". Stages copy it and never read it.
type TraceContext struct {
	TraceID [16]byte
	SpanID  [8]byte
	Flags   byte
}

// Sampled reports whether the caller's span is recorded.
func (t TraceContext) Sampled() bool { return t.Flags&1 != 0 }

// Batch is the rows of one step. It is shared and read-only from the moment the sequencer sends it,
// but for Costs.
type Batch struct {
	Rows     []Row
	Segments []Segment      // cover Rows in order, one per sequence
	Traces   []TraceContext // [len(Segments)]
	Traced   bool           // some Traces entry is sampled
	Probe    *Probe         // or nil; the batch has one segment then
	Plain    bool           // no operations are computed together that need not be
	Wants    []Want         // what is to be collected beside logits, in the order of Want.Compare
	Lane     int            // which set of scratch buffers the step uses
	// It is a decode step: the device runs it before and amid others, if it can (gpu.Queue), and
	// its reads go before those of others (Rank).
	Urgent bool
	// Beside means that somebody decoded when this step of a prompt was formed.
	Beside bool
	// Costs, [len(Segments)], is the exception: while the step is under way expert-IO, dispatch,
	// where the device routes by itself, and the sequencer add to it, and nobody else looks.
	Costs []Cost
}

// Step heads every message of the pipeline: which step, and which of its layers.
type Step struct {
	ID     StepID
	Layer  int
	Batch  *Batch // shared, read-only
	SentNS int64  // when it was sent, on the engine's clock
}

// Orders is how many orders the device keeps: that of urgent steps, and that of others.
const Orders = 2

// Order returns which of them a step belongs to.
func (b *Batch) Order() int {
	if b.Urgent {
		return 1
	}
	return 0
}

// Head returns the step; every pipeline message has it by embedding.
func (s *Step) Head() *Step { return s }

// Stamp notes when the message was sent.
func (s *Step) Stamp(ns int64) { s.SentNS = ns }

// Stamped returns when the message was sent; 0 if it does not say.
func (s *Step) Stamped() int64 { return s.SentNS }

func (*Step) spend(*Spent) {}

func (s *Step) String() string {
	if s.Batch == nil {
		return fmt.Sprintf("step %d layer %d", s.ID, s.Layer)
	}
	return fmt.Sprintf("step %d layer %d (%d rows)", s.ID, s.Layer, len(s.Batch.Rows))
}
