package convert

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/io/ggufmodel"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// Columns of a matrix in blocks are moved head by head. Blocks within a head stay as they are;
// those that hold parts of two heads are widened, and the numbers moved.
func TestPiecesOfBlocks(t *testing.T) {
	const rows, heads, width = 3, 6, 128
	order := ggufmodel.TileOrder(2, heads)
	rng := rand.New(rand.NewPCG(1, 2))
	for name, stays := range map[string]bool{"Q8_0": true, "Q4_0": true, "MXFP4": true, "F16": true, "Q4_K": false, "Q6_K": false} {
		b := quant.BlockNamed(name)
		data := make([]byte, b.Bytes(rows, heads*width))
		for i := range data {
			data[i] = byte(rng.Uint32() & 0x3b) // no scale is infinite or no number
		}
		all := make([]float32, rows*heads*width)
		b.Unpack(all, data)
		var want []float32
		for r := range rows {
			for _, place := range order {
				want = append(want, all[(r*heads+place)*width:][:width]...)
			}
		}
		m := &found{enc: packed, rows: rows, cols: heads * width, block: b, weight: safetensors.Tensor{Name: name, DType: safetensors.DType(name), Shape: []int{rows, heads * width}, Data: data}}
		m.choose(wish{})
		x := spec{pieces: &pieces{width: width, from: order}}.order(m.all())
		blocks, err := x.blocks("out_proj", quant.Panels)
		if err != nil || len(blocks) != 1 {
			t.Fatal(len(blocks), err)
		}
		if kept := blocks[0].format == quant.InBlock(b); kept != stays {
			t.Errorf("%s became %v", name, blocks[0].format)
		}
		var out bytes.Buffer
		e := newEmitter(func([]byte) {})
		e.w = &out
		if err := e.write(blocks[0]); err != nil {
			t.Fatal(err)
		}
		got := make([]float32, len(want))
		for r := range rows {
			blocks[0].format.Unpack(got[r*heads*width:(r+1)*heads*width], heads*width, out.Bytes(), nil, nil, r)
		}
		if !slices.Equal(got, want) || int64(out.Len()) != blocks[0].bytes {
			t.Errorf("%s: columns are in another order", name)
		}
	}
}
