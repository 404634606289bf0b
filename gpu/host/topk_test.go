package host

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
)

// TestTopKTies chooses among many equal logits in several parts of a row, whichever part is done
// first: of equal ones the first.
func TestTopKTies(t *testing.T) {
	const vocab, k, rows = 5*topKPart + 100, 64, 3
	rng := rand.New(rand.NewPCG(1, 2))
	logits := make([]float32, rows*vocab)
	for i := range logits {
		logits[i] = float32(rng.IntN(40)) // each part has more than k of the largest
	}
	for _, threads := range []int{1, 2, 3} {
		d := openConfig(t, Config{Threads: threads})
		x, values, indices, stats := benchFloats(t, d, rows*vocab), benchFloats(t, d, rows*k), benchFloats(t, d, rows*k), benchFloats(t, d, rows*2)
		copy(floatsAt(x, rows*vocab), logits)
		var c gpu.Commands
		gpu.Encode(&c, gpu.TopK{Logits: x, Values: values, Indices: indices, Stats: stats, Rows: rows, Vocab: vocab, K: k})
		for try := range 20 {
			if err := d.Run(&c); err != nil {
				t.Fatal(err)
			}
			for r := range rows {
				order := make([]int32, vocab)
				for i := range order {
					order[i] = int32(i)
				}
				of := logits[r*vocab:][:vocab]
				slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(of[b], of[a]) })
				if got := intsAt(indices, rows*k)[r*k:][:k]; !slices.Equal(got, order[:k]) {
					t.Fatalf("%d threads, try %d, row %d: %v, want %v", threads, try, r, got, order[:k])
				}
			}
		}
	}
}

// BenchmarkTopK chooses the 64 largest of the logits of qwen3's vocabulary.
func BenchmarkTopK(b *testing.B) {
	const vocab, k = 151936, 64
	for _, rows := range []int{1, 32} {
		for _, threads := range threadCounts() {
			b.Run(fmt.Sprintf("rows=%d/threads=%d", rows, threads), func(b *testing.B) {
				d := openConfig(b, Config{Threads: threads})
				rng := rand.New(rand.NewPCG(1, 2))
				x := benchFloats(b, d, rows*vocab)
				for i, f := 0, floatsAt(x, rows*vocab); i < len(f); i++ {
					f[i] = float32(rng.NormFloat64())
				}
				var c gpu.Commands
				gpu.Encode(&c, gpu.TopK{Logits: x, Values: benchFloats(b, d, rows*k), Indices: benchFloats(b, d, rows*k), Stats: benchFloats(b, d, rows*2), Rows: rows, Vocab: vocab, K: k})
				b.ReportMetric(bestOf(b, d, &c)*1e6/float64(rows), "best-us/row")
			})
		}
	}
}
