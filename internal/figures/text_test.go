package figures

import "testing"

// TestCountsText writes counts for people.
func TestCountsText(t *testing.T) {
	want := Totals{
		Counts: Counts{
			PrefetchLate: 1, PrefetchWasted: 12, PrefetchHeld: 3, PrefetchPauses: 1, PrefetchPaused: 1, Times: Times{Compute: 3, Overlap: 0.25, DiskWait: 0.5, Read: 0.75},
		},
		ReadCounts: ReadCounts{Reads: 8, ReadsSpeculative: 7, ReadsHurried: 6, ReadsFailed: 5, ReadsRetried: 4, ReadsOverdue: 3, FromHost: 3, Uploaded: 6 << 20},
	}
	if s := want.PerToken(2); s != "a token computes for 1500.0 ms, waits 250.0 ms for the disk, reads for 375.0 ms (33% of it while computing)" {
		t.Errorf("per token: %s", s)
	}
	if s := want.ReadCounts.Text(); s != "8 reads (7 ahead, 6 hurried); 4 retried, 5 failed, 3 overdue; 6.00 MiB uploaded, 3 experts from the host's memory" {
		t.Errorf("reads: %s", s)
	}
	if s := want.AheadText("both", 2); s != "read ahead (both, 2 layers): 1 used, 1 of them late, 12 unused, 3 held; 1 pause, 1 layer paused now" {
		t.Errorf("reading ahead: %s", s)
	}
	if s := want.AheadText("off", 0); s != "" {
		t.Errorf("reading ahead without a predictor: %s", s)
	}
	// Nothing that did not happen is printed.
	if s := new(ReadCounts).Text() + new(Counts).AheadText("both", 2); s != "" {
		t.Errorf("nothing was read: %s", s)
	}
}
