package figures

import (
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/stages"
)

// Counts are differences between two moments, over all layers.
func TestBetween(t *testing.T) {
	layer := func(h, m, b int64) stages.LayerStats {
		return stages.LayerStats{Hits: h, Misses: m, BytesRead: b, PrefetchLate: h / 5, PrefetchWasted: 2 * h, Times: stages.Times{ComputeNS: h * 1e9}}
	}
	before := &actors.Stats{Steps: 4, Layers: []stages.LayerStats{layer(10, 5, 100), layer(1, 2, 3)}, Times: stages.Times{ReadNS: 1e9},
		Reads: stages.ReadStats{Ended: 10, Speculative: 4, Hurried: 1, Failed: 1, Retried: 2, Overdue: 3, Bytes: 90, FromHost: 9, Uploaded: 4 << 20, WorkerTime: time.Second, MajorFaults: 5}}
	after := &actors.Stats{Steps: 6, Layers: []stages.LayerStats{layer(15, 6, 150), layer(2, 3, 8)}, Times: stages.Times{
		ComputeNS: 3e9, OverlapNS: 25e7, DiskWaitNS: 5e8, ReadNS: 175e7,
	}, Reads: stages.ReadStats{Ended: 18, Speculative: 11, Hurried: 7, Failed: 6, Retried: 6, Overdue: 6, Bytes: 100, FromHost: 12, Uploaded: 10 << 20, WorkerTime: 3 * time.Second, MajorFaults: 6}}
	after.Layers[1].PrefetchPaused, after.Layers[1].PrefetchPauses, after.Layers[0].PrefetchHeld = true, 2, 3
	before.Layers[1].PrefetchPauses, before.Layers[0].PrefetchHeld = 1, 9
	got := Between(before, after)
	want := Totals{
		Counts: Counts{
			ExpertHits: 6, ExpertMisses: 2, ExpertHitRate: 0.75, ExpertKeptRate: 0.625, BytesRead: 55, PrefetchLate: 1, PrefetchWasted: 12,
			PrefetchHeld: 3, PrefetchPauses: 1, PrefetchPaused: 1, Times: Times{3, 0.25, 0.5, 0.75},
		},
		ReadCounts: ReadCounts{
			Reads: 8, ReadsSpeculative: 7, ReadsHurried: 6, ReadsFailed: 5, ReadsRetried: 4, ReadsOverdue: 3, ReadBytes: 10, FromHost: 3, Uploaded: 6 << 20, ReadWork: 2, MajorFaults: 1,
		},
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	layers := Layers(before, after)
	if l := layers[0]; l.Layer != 0 || l.ExpertHits != 5 || l.Compute != 5 || len(layers) != 2 {
		t.Errorf("layers %+v", layers)
	}
	if all := Between(nil, after); all.ExpertHits != 17 || all.Read != 1.75 {
		t.Errorf("since the beginning: %+v", all)
	}
}
