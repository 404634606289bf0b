package model

import (
	"maps"
	"slices"
)

// fp8Tile is the side of the tiles that share one scale in block-scaled FP8 checkpoints.
const fp8Tile = 128

// checkQuantization refuses storage that no converter reads. Bits and groups of affine codes are
// not looked at: they follow from the tensors, and what is written here may be wrong for single
// ones.
func checkQuantization(r *reader) {
	for _, key := range []string{"quantization", "quantization_config"} {
		q := r.object(key)
		if q == nil {
			continue
		}
		switch q.oneOf("quant_method", "fp8", "compressed-tensors", "mxfp4") {
		case "fp8":
			q.oneOf("fmt", "e4m3", "float8_e4m3fn")
			raw, ok := q.get("weight_block_size")
			if !ok {
				q.fail("weight_block_size", "missing: FP8 with one scale a tensor is not supported, only tiles of %d x %d", fp8Tile, fp8Tile)
			} else if size := q.ints("weight_block_size", raw); !slices.Equal(size, []int64{fp8Tile, fp8Tile}) {
				q.fail("weight_block_size", "%s is not supported, only [%d, %d]", excerpt(raw), fp8Tile, fp8Tile)
			}
		case "compressed-tensors":
			q.oneOf("format", "pack-quantized")
		default:
			checkMode(q)
		}
	}
}

// checkMode refuses codes of modes that there are no formats for, which is said for all matrices
// and may be said for single ones.
func checkMode(q *reader) {
	q.oneOf("mode", "affine", "mxfp4")
	for _, path := range slices.Sorted(maps.Keys(q.obj)) {
		if raw, ok := q.get(path); ok && raw[0] == '{' {
			if one := q.object(path); one != nil {
				one.oneOf("mode", "affine", "mxfp4")
			}
		}
	}
}
