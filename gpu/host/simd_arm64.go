//go:build arm64 && !noasm

package host

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

var neonPlain = &plainCode{oneBF16NEON, lastNEON, twoNEON, unpack16NEON}

var neon = kernels{
	name: "neon", pair: 1, rate: 20, quantise: quantiseNEON,
	plain: neonPlain.kernels(), codings: neonPlain.table(neonCodings), blocks: &portableBlocks, arrangeScales: arrangeScalesNEON,
}

// available returns the variants that this processor runs, the best first. NEON needs the products
// of bytes of ARMv8.2. All Macs with ARM processors have them, but older versions of macOS do not
// say so.
func available() []*kernels {
	if cpu.ARM64.HasASIMDDP || runtime.GOOS == "darwin" {
		return []*kernels{&neon, &portable}
	}
	return []*kernels{&portable}
}
