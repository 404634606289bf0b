package stages

import "time"

// Stats is what the stages have counted since the engine was opened. Like its parts it is flat and
// long: every field is a figure that reports print by its name (docs/figures.md).
type Stats struct {
	Steps, Rows, FailedSteps int64
	Layers                   []LayerStats // [layers]
	Slots                    int          // expert slots now
	SlotsUsed                int          // those that hold an expert or are being read into
	SlotsMost                int          // expert slots at Open, the most there can be
	ReadErrors               int64
	WavesSubmitted           int64
	RingHighWater            int // most waves submitted and not retired at once
	PagesUsed, PagesMax      int // key-value pages; one that several states share counts once
	States                   StateStats
	Admission                AdmissionStats
	Reads                    ReadStats
	Memory                   MemoryStats
	Tracing                  TracingStats
	Accounts                 AccountStats
	Hosts                    []HostStats // expert hosts: those of Config.Hosts in their order, then others as they were found

	Times // of all layers, of the head, and of what belongs to no layer
}

// LayerStats is one layer's part of Stats. Hits and misses count experts per step; a pick that
// finds its expert resident or being read for a prediction is a hit.
type LayerStats struct {
	Hits, Misses int64
	Away         int64 // of the misses, those that expert hosts computed
	BytesRead    int64 // for whatever reason
	BytesAhead   int64 // of these, in speculative reads
	// BytesWarm are those of BytesRead that no step asked for: of a warm start, or of experts that
	// come near.
	BytesWarm int64
	Evictions int64 // experts that lost their slots

	// PrefetchIssued counts speculative reads. Each ends as one of Hit (used after it had ended),
	// Late (used while still being read) or Wasted (evicted unused, or failed or recalled before
	// anybody wanted it). PrefetchHeld are those that may still become one of these: read or being
	// read, and not used yet. So Issued = Hit + Late + Wasted + Held.
	PrefetchIssued, PrefetchHit, PrefetchLate, PrefetchWasted, PrefetchHeld int64
	// What was predicted, not in memory, and not read: Dropped because no slot was spare, Declined
	// because it was too unlikely or too late, Skipped because the layer's speculation was paused.
	// An expert counts each time that it is predicted.
	PrefetchDropped, PrefetchDeclined, PrefetchSkipped int64
	// times that speculation was paused because it cost more than it saved
	PrefetchPauses int64
	PrefetchPaused bool // it is now

	Uses   []int64 // [experts] picks of each
	Places []Place // [experts] where each one's record is now; nil in a layer without routed experts

	// Picks counts the picks of rows whose sequence had a row before. SamePicks counts those whose
	// expert that earlier row had picked in this layer too.
	Picks, SamePicks int64
	// AheadPicks counts picks that this layer's router was asked to predict from the previous
	// layer's router input, AheadHits those that it did predict. TwoAheadPicks and TwoAheadHits
	// count the same for the input of the layer before that.
	AheadPicks, AheadHits       int64
	TwoAheadPicks, TwoAheadHits int64

	Times // work of the device for this layer, and waiting for its experts
}

// Place is where the record of an expert is.
type Place uint8

// The places.
const (
	OnDisk    Place = iota // or in the host's memory, for a device with memory of its own
	BeingRead              // into a slot
	InSlot
)

// ReadStats is what the engine's reads of experts cost.
type ReadStats struct {
	Source      string // direct, buffered or mmap; with mmap only MajorFaults counts
	Ended       int64  // reads, with or without an error
	Speculative int64  // of these, asked for on a guess
	Hurried     int64  // of these, wanted before they had begun
	Bytes       int64  // read without an error
	// experts that came from the host's memory and not from the disk, where slots lie in a device's
	// own memory
	FromHost int64
	Uploaded int64 // bytes uploaded to such slots
	Failed   int64 // reads that failed for good
	Retried  int64 // reads that were tried a second time
	Overdue  int64 // reports of late reads
	// reads that brought other bytes than were packed; 0 where reads are not verified
	Corrupt     int64
	Queued      int           // that wait for a worker now
	Running     int           // under way now
	WorkerTime  time.Duration // in reads, summed over workers
	BusyTime    time.Duration // during which at least one read was under way
	QueuedHigh  int           // the most reads that waited for a worker
	RunningHigh int           // the most reads under way
	AtOnce      int           // how many may be under way now, as the disk is faster with fewer
	// of the whole process: page faults that read from the disk
	MajorFaults int64
}

// HostStats is what an expert host was asked, and what came of it.
type HostStats struct {
	Addr              string
	Up                bool  // it can be asked now
	Asks, Failed      int64 // asks, and those of them that went another way
	Hedges            int64 // of the asks, those for what another host was late with
	Uses              int64 // experts, each with all its rows, that it has computed
	BytesOut, BytesIn int64
	// Answered is how long asks took until all was answered, added up. Of that the host says that
	// the asks' waves Waited for their turn, for reads of its disk, and were Computed.
	Answered, Waited, Read, Computed time.Duration
}

// StateStats says which states the engine keeps, and what that was good for.
type StateStats struct {
	Kept               int   // checkpoints, and what is remembered of texts
	KeptBytes, KeptMax int64 // for recurrent states, and pages that nobody else holds
	Remembered         int64 // states of texts that were remembered
	Evicted            int64 // kept states that were given up for lack of memory
	Resumed            int64 // calls to resume a text
	Reused             int64 // tokens of those texts that were not read again
	Parked             int   // states of sequences that lie with the parking store
	Parkings, Returns  int64 // states that were moved there, and brought back
	ParkedHost         int64 // bytes of parked states in host memory
	ParkedDisk         int64 // and in files
	Stored, Recalled   int64 // states of texts that were written to disk, and read from there
	StoredDisk         int64 // bytes of the files of texts
}

// AdmissionStats says who has memory for states and who waits for it.
type AdmissionStats struct {
	Sequences     int   // that have memory
	PromisedBytes int64 // for declared positions that are still to come
	Waiting       int   // requests that wait
	WaitingMost   int   // the most at once
	Waited        int64 // requests that had to wait, however it ended
	Granted       int64 // of these, those that got memory
	TurnedAway    int64 // requests that found the queue full, or had to leave it for others
}

// MemoryStats is what the engine knows about memory. Sizes are in bytes.
type MemoryStats struct {
	Available     int64 // when the engine looked last; 0 before it has looked
	SlotsAsked    int   // expert slots that memory allows, of those at Open; 0 with mapped experts
	SlotsHeld     int64 // memory that the slots take up
	HostHeld      int64 // host memory that holds experts for a device with its own memory
	Shrunk, Grown int64 // times that slots were given up, and that they came back
}

// TracingStats counts what became of traced steps, and which parts of their traces are missing.
type TracingStats struct {
	Steps     int64 // steps whose spans were made
	StepsLost int64 // steps without spans, since a span processor panicked
	// records that were forgotten, or too many, while sampled steps were under way; their spans say
	// how many are missing
	RecordsLost int64
	CallsLost   int64 // calls without a span, since spans were not made as fast as they came
}
