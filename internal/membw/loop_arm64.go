//go:build arm64 && !noasm

package membw

// sumNEON and sumNEONPrefetch return Σ w[i] of n words, a multiple of 128 that is not 0. Both read
// the two halves side by side; sumNEONPrefetch prefetches past their ends, which never faults.

//go:noescape
func sumNEON(w *uint64, n int) uint64

//go:noescape
func sumNEONPrefetch(w *uint64, n int) uint64

// loops returns the loops that this processor runs. Every arm64 processor has NEON. The portable
// ones add patterns that nothing here has, until an arm64 machine shows which way is the fastest.
func loops() []loop {
	return append([]loop{
		{"neon, 2 streams", 1, func(w []uint64) uint64 { return sumNEON(&w[0], len(w)) }},
		{"neon, 2 streams, prefetch", 1, func(w []uint64) uint64 { return sumNEONPrefetch(&w[0], len(w)) }},
	}, portable()...)
}
