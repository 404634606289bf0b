package runtime

import (
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing"
)

// lastOfLayer marks a layer's last WaveResident, in Miss, which the records of the kind do not use
// otherwise, until gatherParts.
const lastOfLayer = 1

// matched counts what the rows of one caller picked in a step, or all rows in a layer.
type matched struct{ hits, misses, bytes int64 }

func (m *matched) add(r *tracing.Record) {
	m.hits += int64(r.Count)
	m.misses += int64(r.Miss)
	m.bytes += r.Bytes
}

// gatherParts gives the records of a step the form that the replayer knows, in their own memory,
// and returns what each segment's rows picked. Reads end one by one: those of a hint become one
// record, with the times of the last, and those on demand none. Uses get their slots as slots come
// free: the layer's LayerRouted gets their sum. And only when a layer's last wave is sent it is
// known how many waves there are; the replayer looks for that in the router's record.
func gatherParts(records []tracing.Record, segments int) ([]tracing.Record, []matched) {
	hints := make(map[int32]int)
	waves := make(map[int32]int32)
	layers := make(map[int32]*matched)
	counts := make([]matched, segments)
	rest := records[:0]
	for _, r := range records {
		switch r.Kind {
		case stages.KindWaveResident:
			if r.Miss == lastOfLayer {
				waves[r.Layer] = r.Wave + 1
			}
			r.Miss = 0
		case tracing.KindMatched:
			if r.Wave >= 0 {
				counts[r.Wave].add(&r)
				continue
			}
			if layers[r.Layer] == nil {
				layers[r.Layer] = new(matched)
			}
			layers[r.Layer].add(&r)
			continue
		case stages.KindExpertsRead:
			if r.Hint == 0 {
				continue
			}
			if i, ok := hints[r.Hint]; ok {
				r.Count, r.Miss, r.Bytes = r.Count+rest[i].Count, r.Miss+rest[i].Miss, r.Bytes+rest[i].Bytes
				rest[i] = r
				continue
			}
			hints[r.Hint] = len(rest)
		}
		rest = append(rest, r)
	}
	for i := range rest {
		switch r := &rest[i]; r.Kind {
		case stages.KindPicksReady:
			r.Miss = waves[r.Layer]
		case stages.KindLayerRouted:
			if m := layers[r.Layer]; m != nil {
				r.Count, r.Miss, r.Bytes = int32(m.hits), int32(m.misses), m.bytes
			}
		}
	}
	return rest, counts
}
