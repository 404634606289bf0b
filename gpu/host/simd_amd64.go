//go:build amd64 && !noasm

package host

import "golang.org/x/sys/cpu"

var (
	avx512Plain = &plainCode{oneBF16AVX512, lastAVX512, twoAVX512, unpack16AVX512}
	avx2Plain   = &plainCode{oneBF16AVX2, lastAVX2, twoAVX2, unpack16AVX2}

	avx512 = kernels{
		name: "avx512", pair: 2, rate: 150, far: inOrder(8192), quantise: quantiseAVX512,
		plain: avx512Plain.kernels(), codings: withOneRow(withBlocks(avx512Plain.table(avx512Codings)), avx512OneRow), blocks: &avx512Blocks, arrangeScales: arrangeScalesAVX512,
	}
	avx2 = kernels{
		name: "avx2", pair: 1, rate: 40, far: inOrder(4096), quantise: quantiseAVX2,
		plain: avx2Plain.kernels(), codings: withOneSplit(withBlocks(avx2Plain.table(avx2Codings))), blocks: &avx2Blocks, arrangeScales: arrangeScalesAVX2,
	}
)

// avxVNNI is AVX2 with products of bytes, which processors without AVX-512 may have (AVX-VNNI).
var avxVNNI = func() kernels {
	k, codings := avx2, *avx2.codings
	for c, dots := range avxvnniCodings {
		if dots.int8s != nil {
			codings[c].int8s = dots.int8s
		}
	}
	k.name, k.rate, k.codings = "avxvnni", 60, &codings
	return k
}()

// available returns the variants that this processor runs, the best first. Processors that have
// AVX-512 but not its products of bytes (VNNI) run AVX2, with AVX-VNNI if they have that.
func available() []*kernels {
	var all []*kernels
	x := &cpu.X86
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512VNNI && x.HasBMI2 && x.HasFMA {
		all = append(all, &avx512)
		all = append(all, matrixUnit()...)
	}
	if x.HasAVX2 && x.HasFMA && x.HasBMI2 {
		if x.HasAVXVNNI {
			all = append(all, &avxVNNI)
		}
		all = append(all, &avx2)
	}
	return append(all, &portable)
}
