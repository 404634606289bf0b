//go:build amd64 && !noasm

package membw

import "golang.org/x/sys/cpu"

// sumAVX512 and sumAVX2 return Σ w[i] of n words, a multiple of 128 that is not 0. They read both
// halves at once and prefetch beyond their ends, which faults nowhere.
//
//go:noescape
func sumAVX512(w *uint64, n int) uint64

//go:noescape
func sumAVX2(w *uint64, n int) uint64

// loops returns the loops that this processor runs, the best first.
func loops() []loop {
	var all []loop
	if cpu.X86.HasAVX512F {
		all = append(all, loop{"avx512", func(w []uint64) uint64 { return sumAVX512(&w[0], len(w)) }})
	}
	if cpu.X86.HasAVX2 {
		all = append(all, loop{"avx2", func(w []uint64) uint64 { return sumAVX2(&w[0], len(w)) }})
	}
	return append(all, portable)
}
