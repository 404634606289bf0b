package main

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
)

// totalCounts are what the whole engine counted between two moments.
type totalCounts struct {
	engineCounts
	readCounts
}

// readCounts are about the reads of all layers; see stages.ReadStats.
type readCounts struct {
	Reads            int64 `json:"reads"` // that ended, with or without an error
	ReadsSpeculative int64 `json:"reads_speculative"`
	ReadsHurried     int64 `json:"reads_hurried"` // speculative, and needed before they had begun
	ReadsRetried     int64 `json:"reads_retried"`
	ReadsFailed      int64 `json:"reads_failed"`
	ReadsOverdue     int64 `json:"reads_overdue"`
	ReadBytes        int64 `json:"disk_bytes"` // read
	// experts copied from the host's memory to slots in a device's own
	FromHost int64   `json:"reads_from_host"`
	Uploaded int64   `json:"bytes_uploaded"`      // to slots in a device's memory
	ReadWork float64 `json:"read_worker_seconds"` // summed over workers
	// of the process: pages of mapped files that had to be read
	MajorFaults int64 `json:"major_faults"`
}

// countsBetween returns what was counted between two moments; a nil before means since the engine
// was opened.
func countsBetween(before, after *actors.Stats) totalCounts {
	s := after.Since(before)
	c := totalCounts{engineCounts{timeCounts: timesOf(s.Times)}, readsOf(s)}
	for _, l := range layersOf(s) {
		c.addCounts(&l.engineCounts)
	}
	c.setRate()
	return c
}

func readsOf(s *actors.Stats) readCounts {
	r := &s.Reads
	return readCounts{
		Reads: r.Ended, ReadsSpeculative: r.Speculative, ReadsHurried: r.Hurried, ReadsRetried: r.Retried, ReadsFailed: r.Failed,
		ReadsOverdue: r.Overdue, ReadBytes: r.Bytes, FromHost: r.FromHost, Uploaded: r.Uploaded, ReadWork: r.WorkerTime.Seconds(), MajorFaults: r.MajorFaults,
	}
}

// add adds what was counted later, all but the rates. What describes a moment is the later one's.
func (c *totalCounts) add(d *totalCounts) {
	c.addCounts(&d.engineCounts)
	c.PrefetchHeld, c.PrefetchPaused = d.PrefetchHeld, d.PrefetchPaused
	c.timeCounts.add(d.timeCounts)
	c.addReads(&d.readCounts)
}

func (c *readCounts) addReads(d *readCounts) {
	c.Reads += d.Reads
	c.ReadsSpeculative += d.ReadsSpeculative
	c.ReadsHurried += d.ReadsHurried
	c.ReadsRetried += d.ReadsRetried
	c.ReadsFailed += d.ReadsFailed
	c.ReadsOverdue += d.ReadsOverdue
	c.ReadBytes += d.ReadBytes
	c.FromHost += d.FromHost
	c.Uploaded += d.Uploaded
	c.ReadWork += d.ReadWork
	c.MajorFaults += d.MajorFaults
}

// text describes the reads; "" if there were none.
func (c *readCounts) text() string {
	var parts []string
	if c.Reads > 0 {
		s := counted(c.Reads, "read")
		if more := nonzero(figurePart{c.ReadsSpeculative, "ahead"}, figurePart{c.ReadsHurried, "hurried"}); more != "" {
			s += " (" + more + ")"
		}
		parts = append(parts, s)
	}
	if troubles := nonzero(figurePart{c.ReadsRetried, "retried"}, figurePart{c.ReadsFailed, "failed"}, figurePart{c.ReadsOverdue, "overdue"}); troubles != "" {
		parts = append(parts, troubles)
	}
	if c.Uploaded > 0 {
		parts = append(parts, fmt.Sprintf("%s uploaded, %s from the host's memory", formatBytes(c.Uploaded), counted(c.FromHost, "expert")))
	}
	return strings.Join(parts, "; ")
}

// aheadText describes what became of reading ahead; "" if nothing was predicted.
func (c *engineCounts) aheadText(predictor string, layersAhead int) string {
	if predictor == "" || predictor == string(actors.PrefetchOff) {
		return ""
	}
	var parts []string
	if s := nonzero(figurePart{c.PrefetchIssued, "begun"}, figurePart{c.usedAhead(), "used"}, figurePart{c.PrefetchLate, "of them late"},
		figurePart{c.PrefetchWasted, "unused"}, figurePart{c.PrefetchHeld, "held"}); s != "" {
		parts = append(parts, s)
	}
	if s := nonzero(figurePart{c.PrefetchDropped, "dropped"}, figurePart{c.PrefetchDeclined, "declined"}, figurePart{c.PrefetchSkipped, "skipped"}); s != "" {
		parts = append(parts, "not read: "+s)
	}
	if c.PrefetchPauses > 0 || c.PrefetchPaused > 0 {
		var pauses []string
		if c.PrefetchPauses > 0 {
			pauses = append(pauses, counted(c.PrefetchPauses, "pause"))
		}
		if c.PrefetchPaused > 0 {
			pauses = append(pauses, counted(c.PrefetchPaused, "layer")+" paused now")
		}
		parts = append(parts, strings.Join(pauses, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("read ahead (%s, %s): %s", predictor, counted(int64(layersAhead), "layer"), strings.Join(parts, "; "))
}
