//go:build arm64 && !noasm

package membw

// sumNEON returns Σ w[i] of n words, a multiple of 128 that is not 0. It reads both halves at once
// and prefetches beyond their ends, which faults nowhere.
//
//go:noescape
func sumNEON(w *uint64, n int) uint64

// loops returns the loops that this processor runs, the best first. Every arm64 has NEON.
func loops() []loop {
	return []loop{{"neon", func(w []uint64) uint64 { return sumNEON(&w[0], len(w)) }}, portable}
}
