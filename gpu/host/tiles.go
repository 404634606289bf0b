package host

import (
	"unsafe"

	"github.com/moeflux/moeflux-actor/model/quant"
)

const (
	tileHeight = 16 // most rows of X that a kernel of tiles takes
	tileInputs = 64 // most inputs of a step
	sumsBytes  = 4 * tileHeight * panelRows
	// with fewer rows of X, other kernels are as quick: they need not unpack codes
	leastTiled = 4
)

// tileKernels multiply panels of affine codes by rows of X held as int8, on a matrix unit.
type tileKernels struct {
	// unpack writes a panel's codes, 64 bytes a line, as bytes. It is indexed by the bits of a
	// code; nil means that they are bytes already.
	unpack [9]func(dst, src *byte, lines int)
	// multiply is a panelKernel for a tileArgs.
	multiply func(a *byte)
}

// tileArgs is what a kernel of tiles computes: the product of a panelArgs, for one panel and up to
// tileHeight rows. The generator knows the offsets of the fields.
type tileArgs struct {
	config         *tileConfig
	w              unsafe.Pointer // a byte for each code
	scales, biases unsafe.Pointer
	scalesEnd      uintptr
	x, end         unsafe.Pointer // the first row of X, and its end
	scalesX        unsafe.Pointer // the first row's scales and sums
	xStride        int
	rows           int
	group          int            // inputs that share a scale
	step           int            // inputs of a step
	stepW          int            // bytes of its codes
	sums           unsafe.Pointer // twice sumsBytes, which begin at a multiple of both
	y              unsafe.Pointer // a pointer to each row of Y
	yOffset        int            // bytes of Y before the panel's
	// codes that are wanted next, which are fetched meanwhile; the kernel moves ahead
	ahead, aheadEnd uintptr
}

// tileConfig is what LDTILECFG loads: the sizes of the tiles.
type tileConfig struct {
	palette  uint8
	_        [15]byte
	rowBytes [16]uint16
	rows     [16]uint8
}

// tileScratch is one thread's memory for products by tiles.
type tileScratch struct {
	args     tileArgs
	config   tileConfig
	codes, x []byte
	sums     []byte
	y        []unsafe.Pointer
	partial  [tileHeight][panelRows]float32 // of a panel that is not whole
	partialY [tileHeight]unsafe.Pointer
}

// mulTiled is mulPanels on a matrix unit, for rows i0 ≤ i < i1 of X.
func (k *kernels) mulTiled(s *panelScratch, w *matrix, p0, p1 int, in, out *rowList, i0, i1 int) {
	t := &s.tiles
	a := &t.args
	first, stride := t.rowsOf(in, i0, i1)
	ys := grow(&t.y, i1-i0)
	for i := range ys {
		ys[i] = unsafe.Pointer(&out.floats(i0 + i)[0])
	}
	a.group = w.format.Group()
	a.step = min(a.group, tileInputs)
	a.stepW = a.step * panelRows
	a.xStride, a.sums = stride, t.sumsAt()
	for p := p0; p < p1; p++ {
		k.loadPanels(s, w, p, 1)
		a.w, a.scales, a.biases = s.args.w, s.args.scales, s.args.biases
		a.scalesEnd = uintptr(a.scales) + uintptr(w.format.ScaleBytes(panelRows, w.cols))
		a.ahead, a.aheadEnd = 0, 0
		if p+1 < p1 && w.format.Layout == quant.Panels {
			bytes := uintptr(w.format.WeightBytes(panelRows, w.cols))
			a.ahead, a.aheadEnd = uintptr(a.w)+bytes, uintptr(a.w)+2*bytes
		}
		if unpack := k.tiles.unpack[w.format.Bits()]; unpack != nil {
			codes := growBytes(&t.codes, w.cols*panelRows)
			unpack(&codes[0], (*byte)(a.w), w.cols*w.format.Bits()*panelRows/8/lineBytes)
			a.w = unsafe.Pointer(&codes[0])
		}
		n := min(panelRows, w.rows-p*panelRows)
		for i := 0; i < len(ys); i += tileHeight {
			t.prepare(first, w.cols, i, min(tileHeight, len(ys)-i))
			if n == panelRows {
				a.y, a.yOffset = unsafe.Pointer(&ys[i]), 4*p*panelRows
				k.tiles.multiply((*byte)(unsafe.Pointer(a)))
				continue
			}
			for j := range t.partialY {
				t.partialY[j] = unsafe.Pointer(&t.partial[j])
			}
			a.y, a.yOffset = unsafe.Pointer(&t.partialY), 0
			k.tiles.multiply((*byte)(unsafe.Pointer(a)))
			for j := range a.rows {
				copy(out.floats(i0 + i + j)[p*panelRows:][:n], t.partial[j][:n])
			}
		}
	}
}

// rowsOf returns the first of the rows i0 ≤ i < i1 of X and the bytes from one to the next. Rows
// that lie apart are brought together.
func (t *tileScratch) rowsOf(in *rowList, i0, i1 int) (first []byte, stride int) {
	if in.list == nil {
		return in.mem[i0*in.stride:], in.stride
	}
	mem := growBytes(&t.x, (i1-i0)*in.width)
	for i := range i1 - i0 {
		copy(mem[i*in.width:], in.bytes(i0+i))
	}
	return mem, in.width
}

// prepare sets the arguments to n rows of X from row i on.
func (t *tileScratch) prepare(first []byte, cols, i, n int) {
	a, c := &t.args, &t.config
	x := first[i*a.xStride:]
	a.x, a.end, a.scalesX, a.rows = unsafe.Pointer(&x[0]), unsafe.Pointer(&x[cols]), unsafe.Pointer(&x[cols]), n
	a.config = c
	c.palette = 1
	const sums, inputs, codes = 0, 2, 3 // as in the generator; sums have two tiles
	for i := range uint8(2) {
		c.rows[sums+i], c.rowBytes[sums+i] = uint8(n), 4*panelRows
	}
	c.rows[inputs], c.rowBytes[inputs] = uint8(n), uint16(a.step)
	c.rows[codes], c.rowBytes[codes] = uint8(a.step/4), 4*panelRows
}

// sumsAt returns memory for sums.
func (t *tileScratch) sumsAt() unsafe.Pointer {
	if t.sums == nil {
		mem := make([]byte, 4*sumsBytes)
		t.sums = mem[-uintptr(unsafe.Pointer(&mem[0]))%(2*sumsBytes):]
	}
	return unsafe.Pointer(&t.sums[0])
}
