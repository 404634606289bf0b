//go:build amd64 && !noasm

package membw

import (
	"slices"

	"golang.org/x/sys/cpu"
)

// Each of these returns Σ w[i] of n words, a multiple of 128 that is not 0. The digit after the x
// is the number of streams; All and Near prefetch past the end of each, which never faults.

//go:noescape
func sum512x1(w *uint64, n int) uint64

//go:noescape
func sum512x1All(w *uint64, n int) uint64

//go:noescape
func sum512x2(w *uint64, n int) uint64

//go:noescape
func sum512x2All(w *uint64, n int) uint64

//go:noescape
func sum512x2Near(w *uint64, n int) uint64

//go:noescape
func sum512x4(w *uint64, n int) uint64

//go:noescape
func sum512x4All(w *uint64, n int) uint64

//go:noescape
func sum512x8(w *uint64, n int) uint64

//go:noescape
func sum512x8All(w *uint64, n int) uint64

//go:noescape
func sum256x1(w *uint64, n int) uint64

//go:noescape
func sum256x1All(w *uint64, n int) uint64

//go:noescape
func sum256x2(w *uint64, n int) uint64

//go:noescape
func sum256x2All(w *uint64, n int) uint64

//go:noescape
func sum256x2Near(w *uint64, n int) uint64

//go:noescape
func sum256x4(w *uint64, n int) uint64

//go:noescape
func sum256x4All(w *uint64, n int) uint64

//go:noescape
func sum512short(w *uint64, n int) uint64

//go:noescape
func sum512shortAll(w *uint64, n int) uint64

//go:noescape
func sum256short(w *uint64, n int) uint64

// loops returns the loops that this processor runs. AVX2 may be the faster of the two: its two
// loads a line drive some prefetchers better than one.
func loops() []loop {
	if !cpu.X86.HasAVX2 {
		return portable()
	}
	return slices.Concat(loops512(), loops256())
}

// of makes a loop of an assembly function.
func of(name string, sum func(w *uint64, n int) uint64) loop {
	return loop{name, 1, func(w []uint64) uint64 { return sum(&w[0], len(w)) }}
}

func loops512() []loop {
	if !cpu.X86.HasAVX512F {
		return nil
	}
	return []loop{
		of("avx512, short loop", sum512short),
		of("avx512, short loop, prefetch", sum512shortAll),
		of("avx512, 1 stream", sum512x1),
		of("avx512, 1 stream, prefetch", sum512x1All),
		of("avx512, 2 streams", sum512x2),
		of("avx512, 2 streams, prefetch", sum512x2All),
		of("avx512, 2 streams, near prefetch", sum512x2Near),
		of("avx512, 4 streams", sum512x4),
		of("avx512, 4 streams, prefetch", sum512x4All),
		of("avx512, 8 streams", sum512x8),
		of("avx512, 8 streams, prefetch", sum512x8All),
	}
}

func loops256() []loop {
	return []loop{
		of("avx2, short loop", sum256short),
		of("avx2, 1 stream", sum256x1),
		of("avx2, 1 stream, prefetch", sum256x1All),
		of("avx2, 2 streams", sum256x2),
		of("avx2, 2 streams, prefetch", sum256x2All),
		of("avx2, 2 streams, near prefetch", sum256x2Near),
		of("avx2, 4 streams", sum256x4),
		of("avx2, 4 streams, prefetch", sum256x4All),
	}
}
