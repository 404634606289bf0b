package main

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/actors"
)

// totalCounts are what the whole engine counted between two moments.
type totalCounts struct {
	engineCounts
	readCounts
}

// readCounts are about reads of experts, of whatever layer; see stages.ReadStats.
type readCounts struct {
	Reads            int64 `json:"reads"` // ended, with or without an error
	ReadsSpeculative int64 `json:"reads_speculative"`
	ReadsHurried     int64 `json:"reads_hurried"` // of these, wanted before they had begun
	ReadsRetried     int64 `json:"reads_retried"`
	ReadsFailed      int64 `json:"reads_failed"`
	ReadsOverdue     int64 `json:"reads_overdue"`
	ReadBytes        int64 `json:"disk_bytes"` // read
	// that were none, since the host's memory had the expert, where slots lie in a device's own
	FromHost int64   `json:"reads_from_host"`
	Uploaded int64   `json:"bytes_uploaded"`      // to such slots
	ReadWork float64 `json:"read_worker_seconds"` // summed over workers
	// of the process: mapped memory that had to be read
	MajorFaults int64 `json:"major_faults"`
}

// countsBetween returns what was counted between two moments; before is nil for since the engine
// was opened.
func countsBetween(before, after *actors.Stats) totalCounts {
	c := totalCounts{engineCounts{timeCounts: timesOf(after.Times)}, readsOf(after)}
	if before != nil {
		c.timeCounts = timesOf(after.Times.Since(before.Times))
		b := readsOf(before)
		c.readCounts.addReads(&b, -1)
	}
	for _, l := range layersBetween(before, after) {
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

// add adds what was counted later, all but the rate. What is of a moment is the later one's.
func (c *totalCounts) add(d *totalCounts) {
	c.addCounts(&d.engineCounts)
	c.PrefetchHeld, c.PrefetchPaused = d.PrefetchHeld, d.PrefetchPaused
	c.timeCounts.add(d.timeCounts)
	c.addReads(&d.readCounts, 1)
}

// addReads adds d so many times.
func (c *readCounts) addReads(d *readCounts, times int64) {
	c.Reads += times * d.Reads
	c.ReadsSpeculative += times * d.ReadsSpeculative
	c.ReadsHurried += times * d.ReadsHurried
	c.ReadsRetried += times * d.ReadsRetried
	c.ReadsFailed += times * d.ReadsFailed
	c.ReadsOverdue += times * d.ReadsOverdue
	c.ReadBytes += times * d.ReadBytes
	c.FromHost += times * d.FromHost
	c.Uploaded += times * d.Uploaded
	c.ReadWork += float64(times) * d.ReadWork
	c.MajorFaults += times * d.MajorFaults
}

// text is the reads for people.
func (c *readCounts) text() string {
	s := fmt.Sprintf("%d reads, %d on a guess and %d of these hurried, %d tried again, %d failed, %d overdue",
		c.Reads, c.ReadsSpeculative, c.ReadsHurried, c.ReadsRetried, c.ReadsFailed, c.ReadsOverdue)
	if c.Uploaded > 0 {
		s += fmt.Sprintf("; %s uploaded, %d experts of it from the host's memory and not from the disk", formatBytes(c.Uploaded), c.FromHost)
	}
	return s
}

// guessText is what became of speculation, for people; "" if nothing is foretold.
func (c *engineCounts) guessText(predictor string, layersAhead int) string {
	if predictor == "" || predictor == string(actors.PrefetchOff) {
		return ""
	}
	s := fmt.Sprintf("prefetch %s, %d layers ahead: %d read ahead, of these %d hits, %d late, %d wasted, %d not used yet; not read: %d dropped, %d declined, %d skipped",
		predictor, layersAhead, c.PrefetchIssued, c.PrefetchHits, c.PrefetchLate, c.PrefetchWasted, c.PrefetchHeld, c.PrefetchDropped, c.PrefetchDeclined, c.PrefetchSkipped)
	if c.PrefetchPauses > 0 || c.PrefetchPaused > 0 {
		s += fmt.Sprintf("; %d pauses, %d layers paused now", c.PrefetchPauses, c.PrefetchPaused)
	}
	return s
}
