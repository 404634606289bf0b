package stages

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
	PagesUsed, PagesMax      int // key-value pages
}

// LayerStats is one layer's part of Stats. Hits and misses count experts per step; a pick that finds its expert
// resident or being read for a prediction is a hit.
type LayerStats struct {
	Hits, Misses int64
	BytesRead    int64 // for whatever reason
	BytesAhead   int64 // of these, in speculative reads
	BytesWarm    int64 // of these, in reads of experts that earlier runs used most
	Evictions    int64 // experts that lost their slots

	// Outcomes of speculative reads: used after they had ended, used while still being read, thrown out unused, and
	// hints dropped because no slot was spare.
	PrefetchHit, PrefetchLate, PrefetchWasted, PrefetchDropped int64

	Uses []int64 // [experts] picks of each

	// Picks counts the picks of rows whose sequence had a row before, SamePicks those of them whose expert that
	// row had picked in this layer too.
	Picks, SamePicks int64
	// AheadPicks counts picks that this layer's router, applied to the previous layer's router input, was asked to
	// foretell, AheadHits those it did.
	AheadPicks, AheadHits int64
}
