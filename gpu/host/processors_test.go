package host

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// TestInt8Processors checks that int8 products have the same bits on all processors: a checksum
// from one stands for the others. TestPanelKernels checks that they are right. Nothing that makes
// the operands rounds. (All variants but NEON's have kernels for other formats.)
func TestInt8Processors(t *testing.T) {
	const want = 0x32aa26da73cac6b9
	for _, k := range available() {
		sum := fnv.New64a()
		for _, f := range panelFormats() {
			if !f.Affine() {
				continue
			}
			c := wholePanelCase(f, 3*panelRows, 5*f.Group())
			for count := 1; count <= len(c.x); count++ {
				sum.Write(gpu.FloatBytes(c.multiply(t, k, &c.panels, true, count)))
			}
		}
		if got := sum.Sum64(); got != want {
			t.Errorf("%s: checksum %#x, want %#x", k.name, got, want)
		}
	}
}

// wholePanelCase is newPanelCase from whole random numbers.
func wholePanelCase(f quant.Format, rows, cols int) *panelCase {
	c := newPanelCase(f, rows, cols, 0)
	rng := rand.New(rand.NewPCG(uint64(f.Bits()), uint64(f.Group())))
	for _, list := range [][]byte{c.panels.scales, c.panels.biases} {
		for i := 0; i < len(list); i += 2 { // ±(1 to 2)/64
			binary.LittleEndian.PutUint16(list[i:], 0x3c80|uint16(rng.Uint32())&0x807f)
		}
	}
	for range maxTile {
		x := make([]float32, cols)
		for i := range x {
			x[i] = float32(int32(rng.Uint32())>>8) / (1 << 20)
		}
		c.x = append(c.x, x)
	}
	return c
}
