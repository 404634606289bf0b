//go:build amd64 && !noasm

package host

import (
	"math"
	"testing"
	"time"
)

// BenchmarkPeak measures the most products of bytes that one core computes, with which figures of
// prompts are compared.
func BenchmarkPeak(b *testing.B) {
	if variant("avx512") == nil {
		b.Skip("this processor has no AVX-512 with VNNI")
	}
	const turns = 1000
	best := time.Duration(math.MaxInt64)
	for b.Loop() {
		began := time.Now()
		dotPeakAVX512(turns)
		best = min(best, time.Since(began))
	}
	b.ReportMetric(turns*24*64/best.Seconds()/1e9, "best-GMAC/s")
}
