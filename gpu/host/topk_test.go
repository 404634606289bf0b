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
	want := make([][]int32, rows)
	for r := range want {
		want[r] = make([]int32, vocab)
		for i := range want[r] {
			want[r][i] = int32(i)
		}
		of := logits[r*vocab:][:vocab]
		slices.SortStableFunc(want[r], func(a, b int32) int { return cmp.Compare(of[b], of[a]) })
	}
	for _, threads := range []int{1, 2, 3} {
		d := openConfig(t, Config{Threads: threads})
		op := topKOf(t, d, rows, vocab, k)
		copy(floatsAt(op.Logits, rows*vocab), logits)
		var c gpu.Commands
		gpu.Encode(&c, op)
		for try := range 20 {
			if err := d.Run(&c); err != nil {
				t.Fatal(err)
			}
			for r := range want {
				if got := intsAt(op.Indices, rows*k)[r*k:][:k]; !slices.Equal(got, want[r][:k]) {
					t.Fatalf("%d threads, try %d, row %d: %v, want %v", threads, try, r, got, want[r][:k])
				}
			}
		}
	}
}

// topKOf returns an operation with memory of its own.
func topKOf(tb testing.TB, d *Device, rows, vocab, k int) gpu.TopK {
	memory := func(n int) gpu.View { return benchFloats(tb, d, n) }
	return gpu.TopK{
		Logits: memory(rows * vocab), Values: memory(rows * k), Indices: memory(rows * k),
		Stats: memory(rows * 2), Rows: rows, Vocab: vocab, K: k,
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
				op := topKOf(b, d, rows, vocab, k)
				for i, f := 0, floatsAt(op.Logits, rows*vocab); i < len(f); i++ {
					f[i] = float32(rng.NormFloat64())
				}
				var c gpu.Commands
				gpu.Encode(&c, op)
				b.ReportMetric(bestOf(b, d, &c)*1e6/float64(rows), "best-us/row")
			})
		}
	}
}
