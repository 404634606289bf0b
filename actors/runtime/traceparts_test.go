package runtime

import (
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing"
)

// TestGatherParts gives the records of two layers, one of which took three waves, and reads that
// ended one by one.
func TestGatherParts(t *testing.T) {
	rec := func(kind tracing.Kind, layer, wave, count, miss int32, ended, bytes int64) tracing.Record {
		return tracing.Record{Step: 1, Layer: layer, Wave: wave, Stage: stages.ExpertIO, Kind: kind, BeganNS: ended - 1, EndedNS: ended, Count: count, Miss: miss, Bytes: bytes}
	}
	hinted := func(hint int32, r tracing.Record) tracing.Record {
		r.Hint = hint
		return r
	}
	scores, resident, read := stages.KindPicksReady, stages.KindWaveResident, stages.KindExpertsRead
	routed, matches := stages.KindLayerRouted, tracing.KindMatched
	got, counts := gatherParts([]tracing.Record{
		rec(scores, 0, 0, 4, 0, 10, 0), rec(scores, 1, 0, 1, 0, 50, 0), rec(routed, 0, 0, 0, 0, 10, 0),
		rec(matches, 0, -1, 2, 1, 10, 100), rec(matches, 0, 0, 2, 0, 10, 0), rec(matches, 0, 1, 1, 1, 10, 100),
		rec(read, 0, 0, 1, 0, 11, 100), hinted(1, rec(read, 0, 0, 1, 0, 12, 100)), rec(read, 0, 0, 1, 1, 13, 0), hinted(1, rec(read, 0, 0, 1, 0, 14, 100)),
		rec(matches, 0, -1, 0, 1, 15, 100), rec(matches, 0, 1, 0, 1, 15, 100),
		hinted(2, rec(read, 1, 0, 1, 0, 15, 100)), rec(read, 0, 0, 1, 0, 16, 100),
		rec(resident, 0, 0, 2, 0, 20, 0), rec(resident, 0, 1, 1, 0, 21, 0), rec(resident, 0, 2, 1, lastOfLayer, 22, 0), rec(resident, 1, 0, 1, lastOfLayer, 60, 0),
	}, 2)
	want := []tracing.Record{
		rec(scores, 0, 0, 4, 3, 10, 0), rec(scores, 1, 0, 1, 1, 50, 0), rec(routed, 0, 0, 2, 2, 10, 200),
		hinted(1, rec(read, 0, 0, 2, 0, 14, 200)), hinted(2, rec(read, 1, 0, 1, 0, 15, 100)),
		rec(resident, 0, 0, 2, 0, 20, 0), rec(resident, 0, 1, 1, 0, 21, 0), rec(resident, 0, 2, 1, 0, 22, 0), rec(resident, 1, 0, 1, 0, 60, 0),
	}
	if wantCounts := []matched{{2, 0, 0}, {1, 2, 200}}; !slices.Equal(counts, wantCounts) {
		t.Errorf("the segments count %+v, want %+v", counts, wantCounts)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}
