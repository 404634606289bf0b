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

	QueuedNS int64 // when the message was sent; 0 if nobody noted it
	BeganNS  int64 // when the stage took it
	EndedNS  int64 // when the stage was done with it and with what it asked for

	// Count and Miss depend on the kind, Bytes and DeviceNS are 0 for the others:
	//
	//	PrefetchExperts  experts being read for it / dropped
	//	PicksReady      experts in the plan / waves
	//	LayerRouted      experts hit / missed; Bytes to be read
	//	ExpertsRead      reads / reads that failed; Bytes read
	//	WaveResident     experts of the wave
	//	TicketDone       waves in the deferred ring, at combine; DeviceNS
	Count, Miss int32
	Bytes       int64
	DeviceNS    int64

	// Times are those of the layer, or of the head, until then: of dispatch's BeginLayer and
	// ReadLogits, of the sequencer's LayerRetired and LogitsReady.
	Times stages.Times
}

// DefaultRingRecords is the capacity of a ring that was asked for none: 4,096 records, 416 KiB,
// hold what expert-IO does in ten tokens of 61 layers.
const DefaultRingRecords = 4096

// staleSteps is how far behind the step being taken a record must be to have missed its own Take:
// messages that a stage handled after the step was answered. Far fewer steps are ever in flight.
const staleSteps = 64

// Ring keeps the last records of one stage. It belongs to one goroutine.
type Ring struct {
	recs []Record // [capacity]
	next int      // where Add writes
	n    int      // records held, ending before next
	lost int64
}

// NewRing makes a ring of that many records; less than 1 means DefaultRingRecords. Too few lose
// records of long steps and with them spans; each costs 104 bytes.
func NewRing(capacity int) *Ring {
	if capacity < 1 {
		capacity = DefaultRingRecords
	}
	return &Ring{recs: make([]Record, capacity)}
}

// Add writes a record, over the oldest one if the ring is full.
func (r *Ring) Add(rec Record) {
	r.recs[r.next] = rec
	if r.next++; r.next == len(r.recs) {
		r.next = 0
	}
	if r.n < len(r.recs) {
		r.n++
	} else {
		r.lost++
	}
}

// Lost returns how many records were overwritten before they were taken.
func (r *Ring) Lost() int64 { return r.lost }

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

// after returns the index behind i.
func (r *Ring) after(i int) int {
	if i++; i == len(r.recs) {
		return 0
	}
	return i
}
