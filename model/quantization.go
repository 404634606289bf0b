package model

import (
	"maps"
	"slices"
)

// fp8Tile is the side of the tiles that share one scale in block-scaled FP8 checkpoints.
const fp8Tile = 128

// parseQuantization refuses storage that no converter reads. Bits and groups of codes are not
// looked at: they follow from the tensors, and what is written here may be wrong for single ones.
func parseQuantization(r *reader, c *Config) {
	for _, key := range []string{"quantization", "quantization_config"} {
		q := r.object(key)
		if q == nil {
			continue
		}
		switch q.oneOf("quant_method", "fp8", "compressed-tensors", "mxfp4", "awq", "gptq", "modelopt") {
		case "fp8":
			checkFP8(q)
		case "compressed-tensors":
			q.oneOf("format", "pack-quantized", "float-quantized", "naive-quantized", "nvfp4-pack-quantized", "mxfp4-pack-quantized", "mixed-precision")
		case "awq":
			q.oneOf("version", "gemm", "GEMM")
		case "gptq":
			c.ZeroPointsLessOne = q.oneOf("checkpoint_format", "gptq", "gptq_v2") != "gptq_v2"
			order, _ := q.get("desc_act")
			c.GroupsOutOfOrder = string(order) == "true"
		case "modelopt":
			q.oneOf("quant_algo", "NVFP4", "FP8", "MIXED_PRECISION")
		default:
			checkMode(q)
		}
	}
}

// checkFP8 refuses tiles of other sizes.
func checkFP8(q *reader) {
	q.oneOf("fmt", "e4m3", "float8_e4m3fn")
	raw, ok := q.get("weight_block_size")
	if !ok {
		return // a scale for each row or tensor
	}
	if size := q.ints("weight_block_size", raw); !slices.Equal(size, []int64{fp8Tile, fp8Tile}) {
		q.fail("weight_block_size", "%s is not supported, only [%d, %d]", excerpt(raw), fp8Tile, fp8Tile)
	}
}

// checkMode refuses codes of modes that there are no formats for, which is said for all matrices
// and may be said for single ones.
func checkMode(q *reader) {
	modes := []string{"affine", "mxfp4", "nvfp4", "mxfp8"}
	q.oneOf("mode", modes...)
	for _, path := range slices.Sorted(maps.Keys(q.obj)) {
		if raw, ok := q.get(path); ok && raw[0] == '{' {
			if one := q.object(path); one != nil {
				one.oneOf("mode", modes...)
			}
		}
	}
}
