package quant

import (
	"encoding/binary"
	"math"
)

// sums are the formats whose numbers are a product plus another: such a sum may need more than the
// 24 bits of a float32.
var sums = map[string]bool{"Q4_1": true, "Q5_1": true, "Q2_K": true, "Q4_K": true, "Q5_K": true}

// Exact reports whether Unpack rounds nothing: every number of the format is a float32.
func (b *Block) Exact() bool { return !sums[b.Name] }

// UnpackF32 is Unpack to numbers in little-endian bytes, four for each.
func (b *Block) UnpackF32(dst, src []byte) {
	var some [1024]float32
	for len(dst) > 0 {
		n := min(len(some), len(dst)/4)
		size := b.Bytes(1, n)
		b.Unpack(some[:n], src[:size])
		for i, x := range some[:n] {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
		}
		dst, src = dst[4*n:], src[size:]
	}
}
