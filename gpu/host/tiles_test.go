package host

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
)

// TestTileArgs compares the struct with the offsets of gen/amx/tiles.go, and the configuration with
// Intel's manual.
func TestTileArgs(t *testing.T) {
	var a tileArgs
	var c tileConfig
	offsets := []uintptr{unsafe.Offsetof(a.config), unsafe.Offsetof(a.w), unsafe.Offsetof(a.scales), unsafe.Offsetof(a.biases), unsafe.Offsetof(a.scalesEnd),
		unsafe.Offsetof(a.x), unsafe.Offsetof(a.end), unsafe.Offsetof(a.scalesX), unsafe.Offsetof(a.xStride), unsafe.Offsetof(a.rows),
		unsafe.Offsetof(a.group), unsafe.Offsetof(a.step), unsafe.Offsetof(a.stepW), unsafe.Offsetof(a.sums), unsafe.Offsetof(a.y),
		unsafe.Offsetof(a.yOffset), unsafe.Offsetof(a.ahead), unsafe.Offsetof(a.aheadEnd)}
	for i, at := range offsets {
		if at != uintptr(8*i) {
			t.Errorf("field %d lies at %d", i, at)
		}
	}
	if unsafe.Sizeof(c) != 64 || unsafe.Offsetof(c.rowBytes) != 16 || unsafe.Offsetof(c.rows) != 48 {
		t.Errorf("a configuration of %d bytes has rows' bytes at %d and rows at %d", unsafe.Sizeof(c), unsafe.Offsetof(c.rowBytes), unsafe.Offsetof(c.rows))
	}
}

// tilesInGo are tileKernels without a matrix unit: what surrounds the kernels is tested everywhere.
// They read what the configuration says and no more.
func tilesInGo() *tileKernels {
	unpack := func(bits int) func(dst, src *byte, lines int) {
		return func(dst, src *byte, lines int) {
			parts := 8 / bits
			from, to := unsafe.Slice(src, 64*lines), unsafe.Slice(dst, 64*parts*lines)
			for i, b := range from {
				for k := range parts {
					to[(i/64*parts+k)*64+i%64] = b >> (k * bits) & (1<<bits - 1)
				}
			}
		}
	}
	k := &tileKernels{multiply: func(p *byte) {
		a := (*tileArgs)(unsafe.Pointer(p))
		c := a.config
		cols := int(uintptr(a.end) - uintptr(a.x))
		w, ys := unsafe.Slice((*byte)(a.w), cols*panelRows), unsafe.Slice((*unsafe.Pointer)(a.y), a.rows)
		scales, biases := unsafe.Slice((*byte)(a.scales), 32*cols/a.group), unsafe.Slice((*byte)(a.biases), 32*cols/a.group)
		for r := range int(c.rows[0]) {
			x := unsafe.Slice((*int8)(unsafe.Add(a.x, r*a.xStride)), cols)
			numbers := unsafe.Slice((*float32)(unsafe.Add(a.scalesX, r*a.xStride)), 2*cols/a.group)
			y := unsafe.Slice((*float32)(unsafe.Add(ys[r], a.yOffset)), panelRows)
			for o := range panelRows {
				total := float32(0)
				for g := range cols / a.group {
					dot := int32(0)
					for i := g * a.group; i < (g+1)*a.group; i++ {
						dot += int32(x[i]) * int32(w[i/4*64+4*o+i%4])
					}
					t, u := float32(bf16(scales, g*panelRows+o)*numbers[2*g]), float32(bf16(biases, g*panelRows+o)*numbers[2*g+1])
					total += float32(float32(float32(dot)*t) + u)
				}
				y[o] = total
			}
		}
	}}
	k.unpack[2], k.unpack[4] = unpack(2), unpack(4)
	return k
}

// TestTiled compares products by tiles with those of the same variant without: they have the same
// bits, for rows in order and rows that lie apart, whole panels and others, and write nothing else.
func TestTiled(t *testing.T) {
	inGo := portable
	inGo.name, inGo.tiles = "tiles in Go", tilesInGo()
	tried := 0
	for _, k := range append(slices.Clone(available()), &inGo) {
		if k.tiles == nil {
			continue
		}
		tried++
		plain := *k
		plain.tiles = nil
		for _, f := range panelFormats() {
			if !f.Affine() {
				continue
			}
			for _, rows := range []int{3 * panelRows, 2*panelRows + 5} {
				c := newPanelCase(f, rows, 4*f.Group(), 40)
				w := &c.panels
				if rows%panelRows != 0 {
					w = &c.rows
				}
				for _, n := range []int{1, 3, 4, 15, 16, 17, 33, 40} {
					for _, apart := range []bool{false, true} {
						want, got := c.tiled(&plain, w, n, apart), c.tiled(k, w, n, apart)
						if err := numcmp.Equal(got, want); err != nil {
							t.Errorf("%s: %v, %d rows of W, %d of X, apart %v: %v", k.name, f, rows, n, apart, err)
						}
					}
				}
			}
		}
	}
	if tried == 0 {
		t.Error("nothing was tried")
	}
}

// tiled returns the products with n rows of X, after and before which there are others.
func (c *panelCase) tiled(k *kernels, w *matrix, n int, apart bool) []float32 {
	in := c.inputs(k, true)
	y := make([]float32, len(c.x)*w.rows)
	for i := range y {
		y[i] = -7
	}
	out := rowList{mem: gpu.FloatBytes(y), stride: 4 * w.rows, width: 4 * w.rows}
	first := min(2, len(c.x)-n)
	if apart {
		rng := rand.New(rand.NewPCG(uint64(n), 5))
		for _, i := range rng.Perm(len(c.x)) {
			in.list = append(in.list, int32(i))
		}
		out.list = in.list
	}
	var s scratch
	k.multiply(&s, w, 0, w.rows, &in, &out, first, first+n)
	return y
}
