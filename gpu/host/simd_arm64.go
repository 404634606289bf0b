//go:build arm64 && !noasm

package host

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

var neon = kernels{
	name: "neon", pair: 1, rate: 20, quantise: quantiseNEON,
	plain: (&plainCode{oneBF16NEON, lastNEON, twoNEON, unpack16NEON}).kernels(),
	int8s: neonInt8s, floats: neonFloats,
	arrange:       [3]func(dst, src *byte, stride, blocks int){arrange2NEON, arrange4NEON, arrange8NEON},
	arrangeScales: arrangeScalesNEON,
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
