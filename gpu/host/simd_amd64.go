//go:build amd64 && !noasm

package host

import "golang.org/x/sys/cpu"

var (
	avx512 = kernels{
		name: "avx512", pair: 2, rate: 150, quantise: quantiseAVX512,
		plain: (&plainCode{oneBF16AVX512, lastAVX512, twoAVX512, unpack16AVX512}).kernels(),
		int8s: avx512Int8s, floats: avx512Floats,
		arrange:       [3]func(dst, src *byte, stride, blocks int){arrange2AVX512, arrange4AVX512, arrange8AVX512},
		arrangeScales: arrangeScalesAVX512,
	}
	avx2 = kernels{
		name: "avx2", pair: 1, rate: 40, quantise: quantiseAVX2,
		plain: (&plainCode{oneBF16AVX2, lastAVX2, twoAVX2, unpack16AVX2}).kernels(),
		int8s: avx2Int8s, floats: avx2Floats,
		arrange:       [3]func(dst, src *byte, stride, blocks int){arrange2AVX2, arrange4AVX2, arrange8AVX2},
		arrangeScales: arrangeScalesAVX2,
	}
)

// available returns the variants that this processor runs, the best first. Processors that have
// AVX-512 but not its products of bytes (VNNI) run AVX2.
func available() []*kernels {
	var all []*kernels
	x := &cpu.X86
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512VNNI && x.HasFMA {
		all = append(all, &avx512)
	}
	if x.HasAVX2 && x.HasFMA {
		all = append(all, &avx2)
	}
	return append(all, &portable)
}
