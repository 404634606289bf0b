//go:build arm64 && !noasm

package host

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

var neon = kernels{
	name: "neon", pair: 1, rate: 20, quantise: quantiseNEON,
	plain: (&plainCode{oneBF16NEON, lastNEON, twoNEON, unpack16NEON}).kernels(),
	int8s: [3][]panelKernel{
		{mulInt8Q2N1NEON, mulInt8Q2N2NEON, mulInt8Q2N3NEON, mulInt8Q2N4NEON},
		{mulInt8Q4N1NEON, mulInt8Q4N2NEON, mulInt8Q4N3NEON, mulInt8Q4N4NEON},
		{mulInt8Q8N1NEON, mulInt8Q8N2NEON, mulInt8Q8N3NEON, mulInt8Q8N4NEON},
	},
	floats: [3][]panelKernel{
		{mulF32Q2N1NEON, mulF32Q2N2NEON, mulF32Q2N3NEON, mulF32Q2N4NEON},
		{mulF32Q4N1NEON, mulF32Q4N2NEON, mulF32Q4N3NEON, mulF32Q4N4NEON},
		{mulF32Q8N1NEON, mulF32Q8N2NEON, mulF32Q8N3NEON, mulF32Q8N4NEON},
	},
	arrange:       [3]func(dst, src *byte, stride, blocks int){arrange2NEON, arrange4NEON, arrange8NEON},
	arrangeScales: arrangeScalesNEON,
}

// available returns the variants that this processor runs, the best first. The variant needs the
// products of bytes of ARMv8.2. All processors of Macs have them; older systems of theirs do not
// say so.
func available() []*kernels {
	if cpu.ARM64.HasASIMDDP || runtime.GOOS == "darwin" {
		return []*kernels{&neon, &portable}
	}
	return []*kernels{&portable}
}
