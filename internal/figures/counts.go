package figures

import "github.com/moeflux/moeflux-actor/actors"

// Counts are what an engine, or one of its layers, counted of experts between two moments; see
// stages.LayerStats, and Glossary for the words. Mapped experts are always hits: what the system
// reads for them is not counted.
type Counts struct {
	ExpertHits    int64   `json:"expert_hits"`
	ExpertMisses  int64   `json:"expert_misses"`
	ExpertAway    int64   `json:"expert_away"`     // of the misses: computed by expert hosts
	ExpertHitRate float64 `json:"expert_hit_rate"` // 0 to 1; 0 if no expert was used
	// the same without hits on experts that were read ahead: what a cache alone would have hit
	ExpertKeptRate float64 `json:"expert_kept_rate"`
	BytesRead      int64   `json:"bytes_read"`
	BytesAhead     int64   `json:"bytes_read_ahead"` // of BytesRead: in speculative reads
	// of BytesRead: experts that earlier runs used most
	BytesWarm int64 `json:"bytes_read_warm"`

	// Speculative reads: begun, used, used while still being read, evicted unused. Then predictions
	// that were not read: without a spare slot, not worth a read, or of a paused layer.
	PrefetchIssued   int64 `json:"prefetch_issued"`
	PrefetchHits     int64 `json:"prefetch_hits"`
	PrefetchLate     int64 `json:"prefetch_late"`
	PrefetchWasted   int64 `json:"prefetch_wasted"`
	PrefetchDropped  int64 `json:"prefetch_dropped"`
	PrefetchDeclined int64 `json:"prefetch_declined"`
	PrefetchSkipped  int64 `json:"prefetch_skipped"`
	PrefetchPauses   int64 `json:"prefetch_pauses"` // begun

	// At the later moment: speculative reads whose experts no token has used yet, and layers whose
	// speculation is paused.
	PrefetchHeld   int64 `json:"prefetch_held"`
	PrefetchPaused int64 `json:"prefetch_paused_layers"`

	Times
}

// Times say where time went, in seconds; see stages.Times.
type Times struct {
	Compute float64 `json:"compute_seconds"` // the device worked
	Overlap float64 `json:"overlap_seconds"` // of that, while experts were being read
	// the device had nothing to do because experts were missing
	DiskWait float64 `json:"disk_wait_seconds"`
	Read     float64 `json:"read_seconds"` // experts were being read
}

// LayerCounts are the counts of one layer. Its read_seconds are always 0, since reads of several
// layers overlap.
type LayerCounts struct {
	Layer int `json:"layer"`
	Counts
}

// Layers returns what each layer counted between two moments; a nil before means since the engine
// was opened.
func Layers(before, after *actors.Stats) []LayerCounts { return layersOf(after.Since(before)) }

func layersOf(s *actors.Stats) []LayerCounts {
	out := make([]LayerCounts, len(s.Layers))
	for i, l := range s.Layers {
		paused := int64(0)
		if l.PrefetchPaused {
			paused = 1
		}
		out[i] = LayerCounts{i, Counts{
			ExpertHits: l.Hits, ExpertMisses: l.Misses, ExpertAway: l.Away, BytesRead: l.BytesRead, BytesAhead: l.BytesAhead, BytesWarm: l.BytesWarm,
			PrefetchIssued: l.PrefetchIssued, PrefetchHits: l.PrefetchHit, PrefetchLate: l.PrefetchLate, PrefetchWasted: l.PrefetchWasted,
			PrefetchDropped: l.PrefetchDropped, PrefetchDeclined: l.PrefetchDeclined, PrefetchSkipped: l.PrefetchSkipped,
			PrefetchPauses: l.PrefetchPauses, PrefetchHeld: l.PrefetchHeld, PrefetchPaused: paused,
			Times: timesOf(l.Times),
		}}
		out[i].setRates()
	}
	return out
}

func timesOf(t actors.Times) Times {
	const second = 1e9
	return Times{float64(t.ComputeNS) / second, float64(t.OverlapNS) / second, float64(t.DiskWaitNS) / second, float64(t.ReadNS) / second}
}

func (t *Times) add(u *Times) {
	t.Compute += u.Compute
	t.Overlap += u.Overlap
	t.DiskWait += u.DiskWait
	t.Read += u.Read
}

// add adds all but times and rates.
func (c *Counts) add(d *Counts) {
	c.ExpertHits += d.ExpertHits
	c.ExpertMisses += d.ExpertMisses
	c.ExpertAway += d.ExpertAway
	c.BytesRead += d.BytesRead
	c.BytesAhead += d.BytesAhead
	c.BytesWarm += d.BytesWarm
	c.PrefetchHits += d.PrefetchHits
	c.PrefetchLate += d.PrefetchLate
	c.PrefetchWasted += d.PrefetchWasted
	c.PrefetchDropped += d.PrefetchDropped
	c.PrefetchIssued += d.PrefetchIssued
	c.PrefetchDeclined += d.PrefetchDeclined
	c.PrefetchSkipped += d.PrefetchSkipped
	c.PrefetchPauses += d.PrefetchPauses
	c.PrefetchHeld += d.PrefetchHeld
	c.PrefetchPaused += d.PrefetchPaused
}

func (c *Counts) setRates() {
	if all := c.ExpertHits + c.ExpertMisses; all > 0 {
		c.ExpertHitRate = float64(c.ExpertHits) / float64(all)
		c.ExpertKeptRate = float64(c.ExpertHits-c.UsedAhead()) / float64(all)
	}
}

// UsedAhead returns the hits on experts that were read ahead.
func (c *Counts) UsedAhead() int64 { return c.PrefetchHits + c.PrefetchLate }
