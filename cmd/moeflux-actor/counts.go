package main

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
)

// engineCounts are what an engine counted between two moments; see stages.LayerStats, and the
// figures of the command's help for the words. Mapped experts are always hits: what the system
// reads for them is not counted.
type engineCounts struct {
	ExpertHits    int64   `json:"expert_hits"`
	ExpertMisses  int64   `json:"expert_misses"`
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

	timeCounts
}

// timeCounts say where time went, in seconds; see stages.Times.
type timeCounts struct {
	Compute float64 `json:"compute_seconds"` // the device worked
	Overlap float64 `json:"overlap_seconds"` // of that, while experts were being read
	// the device had nothing to do because experts were missing
	DiskWait float64 `json:"disk_wait_seconds"`
	Read     float64 `json:"read_seconds"` // experts were being read
}

// layerCounts are the counts of one layer. Its read_seconds are always 0, since reads of several
// layers overlap.
type layerCounts struct {
	Layer int `json:"layer"`
	engineCounts
}

func timesOf(t actors.Times) timeCounts {
	const second = 1e9
	return timeCounts{float64(t.ComputeNS) / second, float64(t.OverlapNS) / second, float64(t.DiskWaitNS) / second, float64(t.ReadNS) / second}
}

func (t *timeCounts) add(u timeCounts) {
	t.Compute += u.Compute
	t.Overlap += u.Overlap
	t.DiskWait += u.DiskWait
	t.Read += u.Read
}

// layersBetween returns what each layer counted between two moments; a nil before means since the
// engine was opened.
func layersBetween(before, after *actors.Stats) []layerCounts { return layersOf(after.Since(before)) }

func layersOf(s *actors.Stats) []layerCounts {
	out := make([]layerCounts, len(s.Layers))
	for i, l := range s.Layers {
		paused := int64(0)
		if l.PrefetchPaused {
			paused = 1
		}
		out[i] = layerCounts{i, engineCounts{
			ExpertHits: l.Hits, ExpertMisses: l.Misses, BytesRead: l.BytesRead, BytesAhead: l.BytesAhead, BytesWarm: l.BytesWarm,
			PrefetchIssued: l.PrefetchIssued, PrefetchHits: l.PrefetchHit, PrefetchLate: l.PrefetchLate, PrefetchWasted: l.PrefetchWasted,
			PrefetchDropped: l.PrefetchDropped, PrefetchDeclined: l.PrefetchDeclined, PrefetchSkipped: l.PrefetchSkipped,
			PrefetchPauses: l.PrefetchPauses, PrefetchHeld: l.PrefetchHeld, PrefetchPaused: paused,
			timeCounts: timesOf(l.Times),
		}}
		out[i].setRate()
	}
	return out
}

// addCounts adds all but times and the rate.
func (c *engineCounts) addCounts(d *engineCounts) {
	c.ExpertHits += d.ExpertHits
	c.ExpertMisses += d.ExpertMisses
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

func (c *engineCounts) setRate() {
	if all := c.ExpertHits + c.ExpertMisses; all > 0 {
		c.ExpertHitRate = float64(c.ExpertHits) / float64(all)
		c.ExpertKeptRate = float64(c.ExpertHits-c.usedAhead()) / float64(all)
	}
}

// usedAhead returns the hits on experts that were read ahead.
func (c *engineCounts) usedAhead() int64 { return c.PrefetchHits + c.PrefetchLate }

// perToken describes where the time of a token went.
func (t *timeCounts) perToken(tokens int) string {
	ms := func(seconds float64) string { return fmt.Sprintf("%.1f ms", 1e3*seconds/float64(max(1, tokens))) }
	s := "a token computes for " + ms(t.Compute)
	if t.Read > 0 {
		s += fmt.Sprintf(", waits %s for the disk, reads for %s (%.0f%% of it while computing)", ms(t.DiskWait), ms(t.Read), 100*t.Overlap/t.Read)
	}
	return s
}

// counted writes a number and its noun: 1 read, 2 reads.
func counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// nonzero lists the parts whose number is not 0.
func nonzero(parts ...figurePart) string {
	var list []string
	for _, p := range parts {
		if p.n != 0 {
			list = append(list, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	return strings.Join(list, ", ")
}

type figurePart struct {
	n    int64
	word string
}
