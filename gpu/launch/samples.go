package launch

import "github.com/moeflux/moeflux-actor/model/quant"

// samples are values of each define that make different text.
var samples = map[string][]int{
	defineCoding: allCodings(), "LAYOUT": {0, 1, 2}, "WIDE": {0, 1}, "XROWS": {1, 8}, "BIAS": {0, 1},
	"BIASED": {0, 1, 1}, "CLAMPED": {0, 1, 2}, "WHICH": {0, 1, 2}, "SHARED": {0, 1, 2},
	"VALUES": {0, 1}, "WEIGHTED": {0, 1}, "TEAM": {1, 8}, "LIMBS": {0, 64, 128},
	"ROUNDED": {64, 0, 128}, "QUADS": {1, 2, 4}, "INTERLEAVED": {0, 1}, "HEAD_DIM": {128, 5},
	"VALUE_DIM": {128, 5}, "HEADS": {8, 1},
	"TILE_DIM": {64, 128, 256}, "SPANS": {0, 1}, "KV8": {0, 1, 2}, "EACH": {8, 1}, "KERNEL": {4, 1},
	"ADVANCE": {0, 1}, "KEY_DIM": {128, 70}, "EXPERTS": {128, 5}, "TOPK": {8, 5}, "SIGMOID": {0, 1},
	"NORM": {0, 1, 0}, "JOBS": {0, 1}, "SIZE": {64, 2048}, "GROUPED": {0, 1}, "ROWS": {8, 32},
	"CHOSEN": {1, 2, 0},
}

func allCodings() (all []int) {
	for c := range quant.NumCodings {
		all = append(all, c)
	}
	return all
}

// Variants returns #define lines of a kernel of package shaders, for checks of its text: each value
// that makes other text stands in one of them at least.
func Variants(kernel string) (all []string) {
	n := 1
	for _, d := range kernelDefines[kernel] {
		n = max(n, len(samples[d]))
	}
	for i := range n {
		text := ""
		for _, d := range kernelDefines[kernel] {
			text += define(d, samples[d][i%len(samples[d])])
		}
		all = append(all, text)
	}
	return all
}
