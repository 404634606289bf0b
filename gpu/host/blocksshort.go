package host

import (
	"unsafe"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// shortEight is eight groups of 32 inputs of a row of X as kernels of blocks of 32 take them. The
// generator knows the offsets of the fields.
type shortEight struct {
	// x has 64 inputs of groups p and p+4 for p from 0 to 3: the first 16 of both, then the others.
	x           [wholeGroup]int8
	scale, sums [blockLanes]float32 // s and S
	less        [blockLanes]int32   // the sum of the int8 times the format's Unsigned, negated
	sizes       [wholeGroup]uint8   // x without a sign
}

// shortRest is the last eight of a row whose groups are not eights. It has zeros where the eight
// before had groups. Number i of order is the lane of the eight that is lane i of y, and mask tells
// lanes that are.
type shortRest struct {
	shortEight
	order, mask [blockLanes]uint32
}

// Bytes of these.
const (
	eightBytes = int(unsafe.Sizeof(shortEight{}))
	restBytes  = int(unsafe.Sizeof(shortRest{}))
	apartBytes = int(unsafe.Sizeof(shortApart{}))
)

// arrangedBytes returns how much memory a row of X takes when it is arranged.
func arrangedBytes(cols int) int {
	n := cols / wholeGroup * eightBytes
	if cols%wholeGroup != 0 {
		n += restBytes
	}
	return n
}

// backBytes returns how many bytes before the end of the eights of a row of W another eight begins
// that ends with the row, 0 if the eights are the row.
func backBytes(cols int, b *quant.Block) int {
	if left := cols % wholeGroup / b.Len; left != 0 {
		return (blockLanes - left) * b.Size
	}
	return 0
}

// arrangeRow arranges a row of X in mem, which has arrangedBytes.
func (k *kernels) arrangeRow(s *blockScratch, mem []byte, cols int, x []byte, b *quant.Block) {
	eights, left := cols/wholeGroup, cols%wholeGroup/b.Len
	k.blocks.arrange(&mem[0], &x[0], &x[cols], eights, -int(b.Unsigned()))
	if left == 0 {
		return
	}
	clear(s.last[:])
	clear(s.of[:])
	copy(s.last[wholeGroup-left*b.Len:], x[eights*wholeGroup:cols])
	copy(s.of[8*(blockLanes-left):], x[cols+8*blockLanes*eights:cols+8*cols/b.Len])
	rest := (*shortRest)(unsafe.Pointer(&mem[eights*eightBytes]))
	k.blocks.arrange(&mem[eights*eightBytes], &s.last[0], &s.of[0], 1, -int(b.Unsigned()))
	for i := range rest.order {
		rest.order[i], rest.mask[i] = uint32(i+blockLanes-left)%blockLanes, 0
		if i < left {
			rest.mask[i] = ^uint32(0)
		}
	}
}

// shortApart is eight blocks of 32 of a row of W, taken apart: codes as shortEight has inputs, with
// a sign if the format's have one in products. The generator knows the offsets of the fields.
type shortApart struct {
	codes         [wholeGroup]byte
	scale, biases [blockLanes]float32
}

// manyArgs is what the kernels of blocks of 32 with rows of X compute: blockArgs, for a row of W
// that was taken apart. The generator knows the offsets of the fields.
type manyArgs struct {
	w      unsafe.Pointer // shortApart
	eights int            // of both
	rest   int            // 1 if another one ends with the row, of which X has a shortRest
	rows   int            // of X, up to blockTile
	x      [blockTile]unsafe.Pointer
	y      [blockTile][blockLanes]float32
}

// mulShort is mulBlocks for blocks of 32 in rows of eights. Rows of X are arranged once for all
// rows of W. Some rows of W are taken apart together, and multiplied by as many rows of X as the
// first-level cache has room for.
func (k *kernels) mulShort(s *blockScratch, w *matrix, o0, o1 int, in, out *rowList, i0, i1 int) {
	b, stored, a := w.format.Block(), &k.codings[w.format.Coding()], &s.many
	width, back := arrangedBytes(w.cols), backBytes(w.cols, b)
	if a.eights, a.rest = w.cols/wholeGroup, 0; back != 0 {
		a.rest = 1
	}
	wide := (a.eights + a.rest) * apartBytes
	apart := growBytes(&s.apart, apartRows*wide)
	tile, per := besideW(width, wide), max(blockTile, blockX/width)
	for ; i0 < i1; i0 += per {
		end := min(i0+per, i1)
		mem := growBytes(&s.arranged, (end-i0)*width)
		for i := i0; i < end; i++ {
			k.arrangeRow(s, mem[(i-i0)*width:][:width], w.cols, in.bytes(i), b)
		}
		for o := o0; o < o1; o += apartRows {
			rows := min(apartRows, o1-o)
			for j := range rows {
				stored.apart(&apart[j*wide], &w.row(o + j)[0], a.eights, back)
			}
			for i := i0; i < end; i += a.rows {
				a.rows = min(tile, end-i)
				for r := range a.rows {
					a.x[r] = unsafe.Pointer(&mem[(i+r-i0)*width])
				}
				for j := range rows {
					a.w = unsafe.Pointer(&apart[j*wide])
					stored.many((*byte)(unsafe.Pointer(a)))
					for r := range a.rows {
						out.floats(i + r)[o+j] = sumLanes(&a.y[r])
					}
				}
			}
		}
	}
}
