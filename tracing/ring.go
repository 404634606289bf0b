package tracing

import "github.com/moeflux/moeflux-actor/stages"

// Record is what one stage did with one message. Times are nanoseconds on the engine's monotonic
// clock, counted from the epoch that the Replayer knows.
type Record struct {
	Step  stages.StepID
	Layer int32
	Wave  int32 // of WaveResident, WaveSubmitted and SlotsReleased
	Stage stages.StageID
	Kind  Kind

	QueuedNS int64 // when the message was sent; 0 if unknown
	BeganNS  int64 // when the stage took the message
	EndedNS  int64 // when the shell had done what the stage asked for

	// Count and Miss depend on the kind. What is not listed is 0:
	//
	//	PrefetchExperts  reads issued / experts dropped, with Declined, Skipped, Hint, and Wave for layers ahead
	//	PicksReady      experts in the plan / waves
	//	LayerRouted      experts hit / missed; Bytes of the reads for the misses
	//	Matched          likewise, as far as they were given slots at once; Wave is the segment, -1 for all
	//	ExpertsRead      reads / reads that failed; Bytes read; Hint, 0 if read on demand
	//	BeginLayer       further layers that begin with it; likewise LayerRetired
	//	WaveResident     experts of the wave
	//	TicketDone       waves in the deferred ring, at combine; DeviceNS
	Count, Miss       int32
	Declined, Skipped int32
	Hint              int32 // numbers the hints of an engine from 1
	Bytes             int64
	DeviceNS          int64

	// Times are those of the layer, or of the head, until then: of dispatch's BeginLayer and
	// ReadLogits, of the sequencer's LayerRetired and LogitsReady.
	Times stages.Times
}

// A ring that was given no capacity begins with DefaultRingRecords, what expert-IO does in ten
// tokens of 61 layers, and doubles when it is full, up to MaxRingRecords: 16 MiB, what it does in a
// cold prompt of 61 layers of 1,000 experts.
const (
	DefaultRingRecords = 1 << 12
	MaxRingRecords     = 1 << 17
)

// staleSteps is how many steps older than the step being taken a record must be to have missed its
// own Take: a stage handled its message after the step was answered. Far fewer steps are ever in
// flight.
const staleSteps = 64

// Ring keeps the last records of one stage. It belongs to one goroutine.
type Ring struct {
	recs   []Record // [capacity]
	next   int      // where Add writes
	n      int      // records held, ending before next
	most   int      // that capacity may become
	lost   int64
	lostOf map[stages.StepID]int64 // nil while nothing is lost
}

// NewRing makes a ring of that many records. Less than 1 makes one that grows as it needs to, from
// DefaultRingRecords to MaxRingRecords. Too few lose records of long steps and with them spans;
// each costs 128 bytes.
func NewRing(capacity int) *Ring {
	if capacity < 1 {
		return &Ring{recs: make([]Record, DefaultRingRecords), most: MaxRingRecords}
	}
	return &Ring{recs: make([]Record, capacity), most: capacity}
}

// Add writes a record. In a full ring that may not grow it takes the place of the oldest one.
func (r *Ring) Add(rec Record) {
	if r.n == len(r.recs) {
		if !r.grow() {
			r.lose(r.recs[r.next].Step)
			r.n--
		}
	}
	r.recs[r.next] = rec
	r.next = r.after(r.next)
	r.n++
}

// grow doubles a full ring, unless it may not grow.
func (r *Ring) grow() bool {
	if len(r.recs) >= r.most {
		return false
	}
	recs := make([]Record, min(2*len(r.recs), r.most))
	n := copy(recs, r.recs[r.next:]) // the oldest first
	copy(recs[n:], r.recs[:r.next])
	r.recs, r.next = recs, r.n
	return true
}

func (r *Ring) lose(step stages.StepID) {
	if r.lostOf == nil {
		r.lostOf = make(map[stages.StepID]int64)
	}
	r.lost++
	r.lostOf[step]++
}

// Lost returns how many records were overwritten before they were taken.
func (r *Ring) Lost() int64 { return r.lost }

// TakeLost returns how many records of a step were overwritten, and forgets it.
func (r *Ring) TakeLost(step stages.StepID) int64 {
	n := r.lostOf[step]
	for s := range r.lostOf {
		if s == step || s+staleSteps < step {
			delete(r.lostOf, s)
		}
	}
	return n
}

// Len returns how many records the ring holds.
func (r *Ring) Len() int { return r.n }

// Take appends the records of a step to dst, oldest first, removes them from the ring and returns
// dst. Records of steps long before it, which came too late for their own Take, are removed too.
func (r *Ring) Take(step stages.StepID, dst []Record) []Record {
	first := r.next - r.n
	if first < 0 {
		first += len(r.recs)
	}
	from, to, kept := first, first, 0
	for range r.n {
		switch rec := &r.recs[from]; {
		case rec.Step == step:
			dst = append(dst, *rec)
		case rec.Step+staleSteps < step:
		default:
			r.recs[to] = *rec
			to = r.after(to)
			kept++
		}
		from = r.after(from)
	}
	r.next, r.n = to, kept
	return dst
}

// after returns the index that follows i.
func (r *Ring) after(i int) int {
	if i++; i == len(r.recs) {
		return 0
	}
	return i
}
