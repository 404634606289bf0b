package stages

import "time"

// Stats is what the stages counted since the engine was opened.
type Stats struct {
	Steps, Rows, FailedSteps int64
	Layers                   []LayerStats // [layers]
	Slots                    int          // expert slots that there are now
	SlotsUsed                int          // of these hold an expert, or are being read into
	SlotsMost                int          // expert slots at Open, which there can be again
	ReadErrors               int64
	WavesSubmitted           int64
	RingHighWater            int // most waves submitted and not retired at once
	PagesUsed, PagesMax      int // key-value pages; one that several states share counts once
	States                   StateStats
	Reads                    ReadStats
	Memory                   MemoryStats
	Tracing                  TracingStats

	Times // of all layers, of the head, and of what belongs to no layer
}

// LayerStats is one layer's part of Stats. Hits and misses count experts per step; a pick that
// finds its expert resident or being read for a prediction is a hit.
type LayerStats struct {
	Hits, Misses int64
	BytesRead    int64 // for whatever reason
	BytesAhead   int64 // of these, in speculative reads
	BytesWarm    int64 // of these, in reads of experts that earlier runs used most
	Evictions    int64 // experts that lost their slots

	// PrefetchIssued counts speculative reads. Each ends as one of Hit (used after it had ended),
	// Late (used while still being read) and Wasted (thrown out unused, or failed before anybody
	// wanted it); PrefetchHeld are those that may still become one of them, read or being read and
	// not used yet. So Issued = Hit + Late + Wasted + Held.
	PrefetchIssued, PrefetchHit, PrefetchLate, PrefetchWasted, PrefetchHeld int64
	// What was foretold, not in memory, and not read: Dropped because no slot was spare, Declined
	// because time or chance spoke against it, Skipped because the layer's speculation was paused.
	// An expert counts each time that it is foretold.
	PrefetchDropped, PrefetchDeclined, PrefetchSkipped int64
	// how often speculation was paused because it cost more than it saved
	PrefetchPauses int64
	PrefetchPaused bool // it is now

	Uses []int64 // [experts] picks of each

	// Picks counts the picks of rows whose sequence had a row before, SamePicks those of them whose
	// expert that row had picked in this layer too.
	Picks, SamePicks int64
	// AheadPicks counts picks that this layer's router, applied to the previous layer's router
	// input, was asked to foretell, AheadHits those it did; TwoAheadPicks and TwoAheadHits are of
	// the input before that.
	AheadPicks, AheadHits       int64
	TwoAheadPicks, TwoAheadHits int64

	Times // work of the device for this layer, and waiting for its experts
}

// ReadStats is what the engine's reads of experts cost.
type ReadStats struct {
	Source      string // direct, buffered, or mmap: nothing is read then, but MajorFaults
	Ended       int64  // reads, with or without an error
	Speculative int64  // of these, asked for on a guess
	Hurried     int64  // of these, wanted before they had begun
	Bytes       int64  // read without an error
	// experts that were not read, since the host's memory had them, where slots lie in a device's
	// own
	FromHost int64
	Uploaded int64 // bytes brought to such slots
	Failed   int64 // reads that failed for good
	Retried  int64 // reads that were tried a second time
	Overdue  int64 // times that a read was reported as late
	// times that a read brought other bytes than were packed; 0 where reads are not verified
	Corrupt     int64
	WorkerTime  time.Duration // in reads, summed over workers
	BusyTime    time.Duration // during which at least one read was under way
	QueuedHigh  int           // the most reads that waited for a worker
	RunningHigh int           // the most reads under way
	// of the whole process: mapped memory that had to be read from the disk
	MajorFaults int64
}

// StateStats is what the engine keeps of states, and what that was good for.
type StateStats struct {
	Kept               int   // checkpoints, and what is remembered of texts
	KeptBytes, KeptMax int64 // their recurrent states, and pages that nobody else holds
	Remembered         int64 // states that were remembered of texts
	Evicted            int64 // of all that was kept, given up for want of memory
	Resumed            int64 // texts that were to be resumed
	Reused             int64 // tokens of them that were not read again
}

// MemoryStats is what the engine knows about memory, in bytes.
type MemoryStats struct {
	Available     int64 // when the engine looked last; 0 before it has
	SlotsAsked    int   // expert slots that memory allows, of those at Open; 0 with mapped experts
	SlotsHeld     int64 // memory that the slots take up
	HostHeld      int64 // memory of the host that holds experts beside a device's own
	Shrunk, Grown int64 // times that slots were given up, and came back
}

// TracingStats counts what became of traced steps, and what of their traces is missing.
type TracingStats struct {
	Steps       int64 // whose spans were made
	StepsLost   int64 // without spans: the exporter did not keep up, or panicked
	RecordsLost int64 // of steps too long to be recorded whole; their spans say how many are missing
}
