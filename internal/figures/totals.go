package figures

import "github.com/moeflux/moeflux-actor/actors"

// Totals are what a whole engine counted between two moments. The zero value is what Add begins
// with.
type Totals struct {
	Counts
	ReadCounts
}

// ReadCounts are about the reads of all layers; see stages.ReadStats.
type ReadCounts struct {
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

// Between returns what was counted between two moments; a nil before means since the engine was
// opened.
func Between(before, after *actors.Stats) Totals {
	s := after.Since(before)
	t := Totals{Counts{Times: timesOf(s.Times)}, readsOf(s)}
	for _, l := range layersOf(s) {
		t.Counts.add(&l.Counts)
	}
	t.setRates()
	return t
}

func readsOf(s *actors.Stats) ReadCounts {
	r := &s.Reads
	return ReadCounts{
		Reads: r.Ended, ReadsSpeculative: r.Speculative, ReadsHurried: r.Hurried, ReadsRetried: r.Retried, ReadsFailed: r.Failed,
		ReadsOverdue: r.Overdue, ReadBytes: r.Bytes, FromHost: r.FromHost, Uploaded: r.Uploaded, ReadWork: r.WorkerTime.Seconds(), MajorFaults: r.MajorFaults,
	}
}

// Add adds what was counted later. What describes a moment is the later one's.
func (t *Totals) Add(d *Totals) {
	t.Counts.add(&d.Counts)
	t.PrefetchHeld, t.PrefetchPaused = d.PrefetchHeld, d.PrefetchPaused
	t.Times.add(&d.Times)
	t.ReadCounts.add(&d.ReadCounts)
	t.setRates()
}

func (c *ReadCounts) add(d *ReadCounts) {
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
