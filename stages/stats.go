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
	Times                        // of all layers, of the head, and of what belongs to no layer
}

// LayerStats is one layer's part of Stats. Hits and misses count experts per wave; a pick that finds its expert
// resident or being read for a prediction is a hit.
type LayerStats struct {
	Hits, Misses, BytesRead int64

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

	Times // work of the device for this layer, and waiting for its experts
}
