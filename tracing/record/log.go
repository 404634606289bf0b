package record

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Log is the last records of an engine. The goroutine that runs the stages writes all tables but
// Submissions, whose writer is the meter. The zero value, and a nil *Log, keep nothing.
type Log struct {
	Handled     Table[Handled]
	Steps       Table[Step]
	StepsEnded  Table[StepEnded]
	Segments    Table[Segment]
	Requests    Table[Request]
	Waits       Table[Wait]
	Uses        Table[Use]
	Reads       Table[Read]
	Guesses     Table[Guess]
	Evictions   Table[Eviction]
	Submissions Table[Submission]
	Levels      Table[Level]
	Picks       Table[Picks]
	Answers     Table[Answer]
}

// DefaultBytes is the memory of a log where nothing else is said: some 80 tokens of a streamed
// model with 48 layers.
const DefaultBytes = 16 << 20

// Steps returns how many of the last steps a log of so many bytes tells of in full, if each step
// makes so many records of each type, by the table's name.
func Steps(bytes int, each map[string]int) int {
	steps := math.MaxInt
	for _, t := range tables {
		if n := each[t.name]; n > 0 {
			steps = min(steps, t.room(bytes)*(blocksPerTable-1)/blocksPerTable/n)
		}
	}
	return steps
}

// NewLog makes a log that takes about so many bytes. They are shared out by how many records of
// each type a token of a streamed model makes. With 0 or less it keeps nothing.
func NewLog(bytes int) *Log {
	l := new(Log)
	if bytes <= 0 {
		return l
	}
	for _, t := range tables {
		t.init(l, bytes)
	}
	return l
}

// table is what is done alike with the tables of all types.
type table struct {
	name  string
	room  func(bytes int) int // records, in a log of so many bytes
	init  func(l *Log, bytes int)
	total func(l *Log) uint64
	// drain calls f with the records that the cursor has not seen, and how many they are.
	drain  func(l *Log, c *Cursor, f func(records any, n int))
	append func(r *Recording, records any)
	of     func(r *Recording) (records any, n int)
	part   func(records any, from, to int) any
	make   func(n int) any // a slice of so many
	bytes  func() int      // of a record in a file
	// the records as a file has them, without a copy; nil where memory has them otherwise
	raw func(records any) []byte
}

func of[T any](name string, share float64, in func(*Log) *Table[T], at func(*Recording) *[]T) table {
	var zero T
	size := int(unsafe.Sizeof(zero))
	room := func(bytes int) int { return int(share * float64(bytes) / float64(size)) }
	return table{
		name:  name,
		room:  room,
		init:  func(l *Log, bytes int) { in(l).init(room(bytes)) },
		total: func(l *Log) uint64 { return in(l).Total() },
		drain: func(l *Log, c *Cursor, f func(any, int)) {
			in(l).Read(c, func(recs []T) { f(recs, len(recs)) })
		},
		append: func(r *Recording, records any) { *at(r) = append(*at(r), records.([]T)...) },
		of:     func(r *Recording) (any, int) { return *at(r), len(*at(r)) },
		part:   func(records any, from, to int) any { return records.([]T)[from:to] },
		make:   func(n int) any { return make([]T, n) },
		bytes:  func() int { return binary.Size(zero) },
		raw: func(records any) []byte {
			if recs := records.([]T); littleEndian && size == binary.Size(zero) && len(recs) > 0 {
				return unsafe.Slice((*byte)(unsafe.Pointer(&recs[0])), len(recs)*size)
			}
			return nil
		},
	}
}

// littleEndian says that the machine keeps numbers as files have them.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// tables are all of them. A file names them by their place here: new ones go to the end.
var tables = []table{
	of("handled", 0.41, func(l *Log) *Table[Handled] { return &l.Handled }, func(r *Recording) *[]Handled { return &r.Handled }),
	of("steps", 0.005, func(l *Log) *Table[Step] { return &l.Steps }, func(r *Recording) *[]Step { return &r.Steps }),
	of("steps_ended", 0.005, func(l *Log) *Table[StepEnded] { return &l.StepsEnded }, func(r *Recording) *[]StepEnded { return &r.StepsEnded }),
	of("segments", 0.01, func(l *Log) *Table[Segment] { return &l.Segments }, func(r *Recording) *[]Segment { return &r.Segments }),
	of("requests", 0.015, func(l *Log) *Table[Request] { return &l.Requests }, func(r *Recording) *[]Request { return &r.Requests }),
	of("waits", 0.03, func(l *Log) *Table[Wait] { return &l.Waits }, func(r *Recording) *[]Wait { return &r.Waits }),
	of("uses", 0.11, func(l *Log) *Table[Use] { return &l.Uses }, func(r *Recording) *[]Use { return &r.Uses }),
	of("reads", 0.10, func(l *Log) *Table[Read] { return &l.Reads }, func(r *Recording) *[]Read { return &r.Reads }),
	of("guesses", 0.10, func(l *Log) *Table[Guess] { return &l.Guesses }, func(r *Recording) *[]Guess { return &r.Guesses }),
	of("evictions", 0.03, func(l *Log) *Table[Eviction] { return &l.Evictions }, func(r *Recording) *[]Eviction { return &r.Evictions }),
	of("submissions", 0.13, func(l *Log) *Table[Submission] { return &l.Submissions }, func(r *Recording) *[]Submission { return &r.Submissions }),
	of("levels", 0.005, func(l *Log) *Table[Level] { return &l.Levels }, func(r *Recording) *[]Level { return &r.Levels }),
	of("picks", 0.03, func(l *Log) *Table[Picks] { return &l.Picks }, func(r *Recording) *[]Picks { return &r.Picks }),
	of("answers", 0.02, func(l *Log) *Table[Answer] { return &l.Answers }, func(r *Recording) *[]Answer { return &r.Answers }),
}

// MostBytes is the most that a record takes in a file, with its part of a chunk's head.
const MostBytes = 256

// Totals returns how many records of each type were written, by the table's name.
func (l *Log) Totals() map[string]uint64 {
	totals := make(map[string]uint64, len(tables))
	for _, t := range tables {
		totals[t.name] = t.total(l)
	}
	return totals
}

// Recording returns a copy of what the log holds, without a Meta.
func (l *Log) Recording() *Recording {
	r := new(Recording)
	for _, t := range tables {
		var c Cursor
		t.drain(l, &c, func(records any, _ int) { t.append(r, records) })
		r.forgotten(t.name, c.Missed)
	}
	return r
}
