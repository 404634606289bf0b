package host

import (
	"unsafe"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// Stripes are how several rows of X are multiplied by blocks where a register holds 16 numbers: 16
// rows of W, taken apart and transposed, so that each lane is a row. The result has the bits of
// blockArgs. The eight lanes of blocks of 32 are added up one after the other, of which each is
// made of segments: every eighth group. The segments of blocks of 256 are the blocks.
const (
	stripeRows = 16 // of W
	stripeTile = 8  // rows of X that are taken at a time
)

// stripeArgs is what the products of a stripe compute. The generator knows the offsets of the
// fields.
type stripeArgs struct {
	// Of blocks of 32 w has codes [groups][8][16]int8[4], numbers their scales [groups][16]float32,
	// and other their biases. Of blocks of 256 w has codes [blocks][64][16]int8[4], or products of
	// codes and scales, and numbers the transposed quant.Wholes [blocks][18][16].
	w, numbers, other unsafe.Pointer
	segments          int // of a lane
	// Of segments of X, by lane, segment and row: the inputs, int8; and a stripeShort or a
	// stripeWhole.
	x, of unsafe.Pointer
	lanes unsafe.Pointer // scratch: float32 [8][stripeTile][16]
	y     [stripeTile]unsafe.Pointer
}

// stripeShort is what a group of X has beside its inputs: s and S of blockArgs, and the sum of the
// int8 times -128, since kernels add 128 to codes.
type stripeShort struct {
	s, sum float32
	less   int32
}

// stripeWhole is the same of a block of 256: s, and sums of 16.
type stripeWhole struct {
	s    float32
	sums [16]int16
}

// stripeKernels is a variant's functions for stripes.
type stripeKernels struct {
	short     [2]stripeKernel            // of blocks of 32, biased or not
	whole     map[blockKind]stripeKernel // of blocks of 256; group 1: see smallProducts
	transpose func(dst, src []float32, dstStride, srcStride, rows, columns int)
}

// stripeKernel multiplies stripes of a kind of blocks.
type stripeKernel struct {
	few, tile blockKernel   // for up to half of stripeTile rows of X, and for more
	arrange   func(a *byte) // arranges a row of X: a points to a stripeRow
	// scale multiplies codes by their scales, where the products and perhaps 127 fit in a byte.
	scale  func(codes, wholes *byte, blocks int)
	lanes  int // of a row
	inputs int // of a segment
	least  int // rows of X that are worth a stripe
}

// of returns the kernel for a format.
func (k *stripeKernels) of(b *quant.Block) stripeKernel {
	switch {
	case b.Len == wholeGroup && smallProducts(b):
		return k.whole[blockKind{1, b.Biased}]
	case b.Len == wholeGroup:
		return k.whole[blockKind{b.Group, b.Biased}]
	case b.Biased:
		return k.short[1]
	}
	return k.short[0]
}

// smallProducts reports whether products of codes and scales of a format have 8 bits: codes of 2
// bits and scales of 4, or of 3 and 6, which are 4 less without a sign.
func smallProducts(b *quant.Block) bool { return b.Group == 16 && b.Least <= 4 }

// stripeScratch is one thread's memory for stripes.
type stripeScratch struct {
	args       stripeArgs
	kernel     stripeKernel
	apart      []int8 // 16 rows of codes
	scales     []float32
	biases     []float32
	wholes     []quant.Whole
	w, numbers []float32 // transposed, whatever they are
	other      []float32
	x          []byte
	short      []stripeShort
	whole      []stripeWhole
	row        stripeRow
	lanes      [blockLanes * stripeTile * stripeRows]float32
	y          [stripeTile][stripeRows]float32
}

// stripePad are bytes between rows that are to be transposed: rows that begin at the same place of
// a page push each other out of the first-level cache.
const stripePad = 64

// stripeX is about how many bytes rows of X have that are multiplied by a stripe before the next is
// made: they stay in the second-level cache.
const stripeX = 512 << 10

// mulStripes is mulBlocks for variants that have stripes.
func (k *kernels) mulStripes(s *blockScratch, w *matrix, o0, o1 int, in, out *rowList, i0, i1 int) {
	t, b := &s.stripe, w.format.Block()
	t.kernel = k.blocks.stripes.of(b)
	a := &t.args
	a.segments, a.lanes = chunks(w.cols, wholeGroup), unsafe.Pointer(&t.lanes[0])
	each := t.kernel.lanes * a.segments // of a row of X
	per := max(stripeX/(each*t.kernel.inputs), stripeTile) &^ (stripeTile - 1)
	for ; i0 < i1; i0 += per {
		end := min(i0+per, i1)
		t.arrangeRows(w, in, i0, end)
		for o := o0; o < o1; o += stripeRows {
			rows := min(stripeRows, o1-o)
			k.takeStripe(t, w, o, rows)
			for i := i0; i < end; i += stripeTile {
				at := each * (i - i0)
				if a.x = unsafe.Pointer(&t.x[t.kernel.inputs*at]); b.Len == wholeGroup {
					a.of = unsafe.Pointer(&t.whole[at])
				} else {
					a.of = unsafe.Pointer(&t.short[at])
				}
				t.multiply(out, o, rows, i, min(stripeTile, end-i))
			}
		}
	}
}

// multiply multiplies a stripe of some rows of W from row o on by n rows of X, whose results are
// row i of out and those after it.
func (t *stripeScratch) multiply(out *rowList, o, rows, i, n int) {
	a := &t.args
	for r := range a.y {
		if a.y[r] = unsafe.Pointer(&t.y[r][0]); r < n && rows == stripeRows {
			a.y[r] = unsafe.Pointer(&out.floats(i + r)[o:][:stripeRows][0])
		}
	}
	if n > stripeTile/2 {
		t.kernel.tile((*byte)(unsafe.Pointer(a)))
	} else {
		t.kernel.few((*byte)(unsafe.Pointer(a)))
	}
	for r := 0; r < n && rows < stripeRows; r++ {
		copy(out.floats(i + r)[o:o+rows], t.y[r][:])
	}
}

// takeStripe takes rows of W apart and transposes them.
func (k *kernels) takeStripe(t *stripeScratch, w *matrix, o, rows int) {
	row := func(r int) []byte { return w.row(o + min(r, rows-1)) }
	switch b, stored := w.format.Block(), &k.codings[w.format.Coding()]; {
	case b.Len != wholeGroup:
		k.takeShort(t, b, stored, w.cols, row)
	default:
		k.takeWhole(t, stored, w.cols, row)
	}
}

// takeWhole is takeStripe for blocks of 256.
func (k *kernels) takeWhole(t *stripeScratch, stored *codingKernels, cols int, row func(r int) []byte) {
	const each = int(unsafe.Sizeof(quant.Whole{}) / 4)
	a, turn := &t.args, k.blocks.stripes.transpose
	blocks := cols / wholeGroup
	even := (blocks + 1) &^ 1 // columns are transposed by fours
	wide := cols + stripePad
	wholes, codes := grow(&t.wholes, stripeRows*even), grow(&t.apart, stripeRows*wide)
	for r := range stripeRows {
		c, w := codes[r*wide:][:cols], wholes[r*even:][:blocks]
		if stored.whole(c, w, row(r)); t.kernel.scale != nil {
			t.kernel.scale((*byte)(unsafe.Pointer(&c[0])), (*byte)(unsafe.Pointer(&w[0])), blocks)
		}
	}
	to, numbers := grow(&t.w, stripeRows*cols/4), grow(&t.numbers, stripeRows*each*even)
	turn(to, moved(codes), stripeRows, wide/4, stripeRows, cols/4)
	turn(numbers, moved(wholes), stripeRows, each*even, stripeRows, each*even)
	a.w, a.numbers = unsafe.Pointer(&to[0]), unsafe.Pointer(&numbers[0])
}

// takeShort is takeStripe for blocks of 32. Groups past the row's have scales and biases of 0.
func (k *kernels) takeShort(t *stripeScratch, b *quant.Block, stored *codingKernels, cols int, row func(r int) []byte) {
	a, turn := &t.args, k.blocks.stripes.transpose
	groups, own := blockLanes*a.segments, cols/32
	wide, of := 32*groups+stripePad, groups+stripePad/4
	codes, scales, biases := grow(&t.apart, stripeRows*wide), grow(&t.scales, stripeRows*of), grow(&t.biases, stripeRows*of)
	for r := range stripeRows {
		stored.split(codes[r*wide:][:cols], scales[r*of:][:own], biases[r*of:][:own], row(r))
		clear(scales[r*of+own:][:groups-own])
		clear(biases[r*of+own:][:groups-own])
	}
	to, numbers, other := grow(&t.w, stripeRows*8*groups), grow(&t.numbers, stripeRows*groups), grow(&t.other, stripeRows*groups)
	turn(to, moved(codes), stripeRows, wide/4, stripeRows, 8*groups)
	turn(numbers, scales, stripeRows, of, stripeRows, groups)
	if b.Biased {
		turn(other, biases, stripeRows, of, stripeRows, groups)
	}
	a.w, a.numbers, a.other = unsafe.Pointer(&to[0]), unsafe.Pointer(&numbers[0]), unsafe.Pointer(&other[0])
}

// moved returns the memory of a slice as numbers of 4 bytes, which are moved alone.
func moved[T any](s []T) []float32 {
	var one T
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(one))/4)
}

// arrangeRows arranges rows of X.
func (t *stripeScratch) arrangeRows(w *matrix, in *rowList, i0, end int) {
	inputs, each := t.kernel.inputs, t.kernel.lanes*t.args.segments*stripeTile // segments of a tile
	tiles := chunks(end-i0, stripeTile)
	x := growBytes(&t.x, inputs*each*tiles)
	for i := i0; i < end; i++ {
		at := (i-i0)/stripeTile*each + (i-i0)%stripeTile
		if to, row := x[inputs*at:], in.bytes(i); w.format.Block().Len == wholeGroup {
			t.arrangeWhole(to, grow(&t.whole, each*tiles)[at:], row)
		} else {
			t.arrangeShort(w.cols, to, grow(&t.short, each*tiles)[at:], row)
		}
	}
}

// stripeRow is what arranges a row of X for stripes: its int8, and s and S of groups, and of blocks
// of 256 sums of 16, so many times eight groups, or blocks; where its first segment goes, inputs
// and the rest; and of blocks of 32 how many bytes later a lane's segments begin than those of the
// lane before. The generator knows the offsets of the fields.
type stripeRow struct {
	x, numbers, sums unsafe.Pointer
	dst, of          unsafe.Pointer
	laneX, laneOf    int
	count            int
}

// arrangeWhole arranges a row of X for blocks of 256. Its first segment is at the beginning of
// both.
func (t *stripeScratch) arrangeWhole(x []byte, of []stripeWhole, row []byte) {
	blocks := t.args.segments
	cols, r := blocks*wholeGroup, &t.row
	*r = stripeRow{
		x: unsafe.Pointer(&row[0]), numbers: unsafe.Pointer(&row[cols]), sums: unsafe.Pointer(&row[cols+8*blocks]),
		dst: unsafe.Pointer(&x[0]), of: unsafe.Pointer(&of[0]), count: blocks,
	}
	t.kernel.arrange((*byte)(unsafe.Pointer(r)))
}

// arrangeShort is arrangeWhole for blocks of 32. A lane's last segment is zeros if the row ends
// before it.
func (t *stripeScratch) arrangeShort(cols int, x []byte, of []stripeShort, row []byte) {
	segments, r := t.args.segments, &t.row
	*r = stripeRow{
		x: unsafe.Pointer(&row[0]), numbers: unsafe.Pointer(&row[cols]), dst: unsafe.Pointer(&x[0]), of: unsafe.Pointer(&of[0]),
		laneX: 32 * stripeTile * segments, laneOf: int(unsafe.Sizeof(of[0])) * stripeTile * segments, count: cols / wholeGroup,
	}
	t.kernel.arrange((*byte)(unsafe.Pointer(r)))
	if cols%wholeGroup == 0 {
		return
	}
	numbers := unsafe.Slice((*[2]float32)(unsafe.Pointer(&row[cols])), cols/32)
	for lane := range blockLanes {
		g, at := blockLanes*(segments-1)+lane, (lane*segments+segments-1)*stripeTile
		to := x[32*at:][:32]
		if g >= len(numbers) {
			clear(to)
			of[at] = stripeShort{}
			continue
		}
		less := int32(0)
		for i, q := range row[32*g:][:32] {
			to[i] = q
			less -= 128 * int32(int8(q))
		}
		of[at] = stripeShort{numbers[g][0], numbers[g][1], less}
	}
}
