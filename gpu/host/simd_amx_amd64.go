//go:build amx && amd64 && !noasm

package host

import "golang.org/x/sys/cpu"

// withTiles is AVX-512 and, for several rows of X held as int8, the matrix unit (AMX).
var withTiles = func() kernels {
	k := avx512
	k.name, k.rate = "amx", 400
	k.tiles = &tileKernels{multiply: tilesAMX}
	k.tiles.unpack[2], k.tiles.unpack[4] = unpack2AMX, unpack4AMX
	return k
}()

// matrixUnit returns the variant that uses the matrix unit, if the processor has one and the system
// allows it. It comes after AVX-512, and so has to be asked for, as long as the figures of
// docs/experiments.md do not say that prompts are quicker with it.
func matrixUnit() []*kernels {
	if cpu.X86.HasAMXTile && cpu.X86.HasAMXInt8 && mayUseTiles() {
		return []*kernels{&withTiles}
	}
	return nil
}
