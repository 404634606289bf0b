package host

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// Stripes have the bits of the definition, whatever rows of W and of X a call has: whole stripes
// and parts, whole tiles of X and less, rows that are eights of groups and others, and inputs and
// codes that are all as large as they get.
func TestStripes(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, k := range available() {
		if k.blocks.stripes == nil {
			continue
		}
		for c := range quant.Coding(quant.NumCodings) {
			b := c.Block()
			if b == nil || b.Len == 1 {
				continue
			}
			for _, cols := range []int{256, 288, 480, 768, 2880} {
				if cols%b.Len == 0 {
					stripesOf(t, rng, k, b, cols)
				}
			}
		}
	}
}

func stripesOf(t *testing.T, rng *rand.Rand, k *kernels, b *quant.Block, cols int) {
	const rows, most = 2*stripeRows + 5, 2*stripeTile + 5
	src := finiteBlocks(rng, b, rows*cols/b.Len)
	for o, all := range map[int]byte{0: 0x00, 1: 0xff, 2: 0x80} { // of codes; the scales stay
		for i := o * cols / b.Len; i < (o+1)*cols/b.Len; i++ {
			for j := b.Size - 16; j < b.Size && b.Len == 32; j++ {
				src[i*b.Size+j] = all
			}
		}
	}
	w := matrix{rows: rows, cols: cols, format: quant.InBlock(b), rowBytes: b.Bytes(1, cols), weight: src}
	in := rowList{stride: recordBytes(cols, b.Len), width: recordBytes(cols, b.Len), int8s: true}
	for i := range most {
		in.mem = append(in.mem, roundedBeside(rng, b, cols, i%3 == 0)...)
	}
	for _, call := range []struct{ o0, o1, i0, i1 int }{
		{0, rows, 0, most}, {3, 3 + stripeRows, 0, stripeTile}, {7, 9, 1, 1 + stripeTile + 3}, {16, 36, 2, most}, {0, stripeRows, 4, 8},
	} {
		var y [2][]float32
		for i, k := range []*kernels{k, &portable} {
			y[i] = make([]float32, most*rows)
			out := rowList{mem: gpu.FloatBytes(y[i]), stride: 4 * rows, width: 4 * rows}
			k.mulBlocks(new(blockScratch), &w, call.o0, call.o1, &in, &out, call.i0, call.i1)
		}
		sameBits(t, fmt.Sprintf("%s, %d columns, %v", k.name, cols, call), w.format.Coding(), y[0], y[1])
	}
}
