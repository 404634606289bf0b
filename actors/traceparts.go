package actors

import "github.com/moeflux/moeflux-actor/tracing"

// What the shells note in fields that the records of the kind do not use otherwise, until
// gatherParts.
const (
	aheadReads  = 1 // Wave of an ExpertsRead of speculative reads
	lastOfLayer = 1 // Miss of a layer's last WaveResident
)

// gatherParts gives the records of a step the form that the replayer knows. Reads end one by one:
// those of a layer become one record for demand and one for speculation, with the times of the
// last. And only when a layer's last wave is sent it is known how many there are, which the
// replayer looks for in the router's record. It works in the memory of records.
func gatherParts(records []tracing.Record) []tracing.Record {
	type reads struct{ layer, ahead int32 }
	at := make(map[reads]int)
	waves := make(map[int32]int32)
	rest := records[:0]
	for _, r := range records {
		switch r.Kind {
		case tracing.KindWaveResident:
			if r.Miss == lastOfLayer {
				waves[r.Layer] = r.Wave + 1
			}
			r.Miss = 0
		case tracing.KindExpertsRead:
			key := reads{r.Layer, r.Wave}
			r.Wave = 0
			if i, ok := at[key]; ok {
				r.Count, r.Miss, r.Bytes = r.Count+rest[i].Count, r.Miss+rest[i].Miss, r.Bytes+rest[i].Bytes
				rest[i] = r
				continue
			}
			at[key] = len(rest)
		}
		rest = append(rest, r)
	}
	for i := range rest {
		if r := &rest[i]; r.Kind == tracing.KindPicksReady {
			r.Miss = waves[r.Layer]
		}
	}
	return rest
}
