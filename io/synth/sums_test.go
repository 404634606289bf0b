package synth

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// TestRecordSums computes checksums of records whose bytes come in chunks of any size, in any
// order.
func TestRecordSums(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		record, records := 1+r.IntN(5000), 1+r.IntN(5)
		data := make([]byte, record*records)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		var chunks [][2]int
		for at := 0; at < len(data); {
			n := min(1+r.IntN(3*record), len(data)-at)
			chunks = append(chunks, [2]int{at, at + n})
			at += n
		}
		r.Shuffle(len(chunks), func(i, j int) { chunks[i], chunks[j] = chunks[j], chunks[i] })
		s := &recordSums{record: int64(record), parts: map[int64]sumPart{}}
		for _, c := range chunks {
			s.add(data[c[0]:c[1]], int64(c[0]))
		}
		for i, got := range s.sums(records) {
			if want := crc32.Checksum(data[i*record:(i+1)*record], castagnoli); got != want {
				t.Fatalf("record %d of %d bytes in %d chunks: %#x, want %#x", i, record, len(chunks), got, want)
			}
		}
	}
}
