package stages

// Stats is what the stages counted since the engine was opened.
type Stats struct {
	Steps, Rows, FailedSteps int64
	Layers                   []LayerStats // [layers]
	Slots                    int          // expert slots in all
	ReadErrors               int64
	WavesSubmitted           int64
	RingHighWater            int // most waves submitted and not retired at once
	PagesUsed, PagesMax      int // key-value pages
}

// LayerStats is one layer's part of Stats. Hits and misses count experts per wave; a pick that finds its expert
// resident or being read for a prediction is a hit.
type LayerStats struct {
	Hits, Misses, BytesRead int64

	// PrefetchIssued counts speculative reads. Each ends as one of Hit (used after it had ended), Late (used while still being read) and
	// Wasted (thrown out unused, or failed before anybody wanted it); PrefetchHeld are those that may still become one of them, read or
	// being read and not used yet. So Issued = Hit + Late + Wasted + Held.
	PrefetchIssued, PrefetchHit, PrefetchLate, PrefetchWasted, PrefetchHeld int64
	// What was foretold, not in memory, and not read: Dropped because no slot was spare, Declined because time or chance spoke against
	// it, Skipped because the layer's speculation was paused. An expert counts each time that it is foretold.
	PrefetchDropped, PrefetchDeclined, PrefetchSkipped int64
	PrefetchPauses                                     int64 // how often speculation was paused because it cost more than it saved
	PrefetchPaused                                     bool  // it is now

	Uses []int64 // [experts] picks of each

	// Picks counts the picks of rows whose sequence had a row before, SamePicks those of them whose expert that
	// row had picked in this layer too.
	Picks, SamePicks int64
	// AheadPicks counts picks that this layer's router, applied to the previous layer's router input, was asked to
	// foretell, AheadHits those it did; TwoAheadPicks and TwoAheadHits are of the input before that.
	AheadPicks, AheadHits       int64
	TwoAheadPicks, TwoAheadHits int64
}
