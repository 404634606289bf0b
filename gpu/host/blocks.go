package host

import (
	"encoding/binary"
	"unsafe"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// blockArgs is what a blockKernel computes, of one row of W for rows r of X. Of blocks of 32 it is
//
//	y[r] = Σ_g (Σ_i q[i]·x[r][i])·(scale[g]·s[r]) + bias[g]·S[r]   over the groups g of inputs i
//
// where s is the group's scale and S is s times the sum of its int8. Groups whose numbers are equal
// modulo 8 are added up in ascending order, in a lane, and the lanes at the end, see sumLanes. Of
// blocks of 256 it is
//
//	y[r] = Σ_b (Σ_i q[i]·x[r][i]·scale[i/16])·(d[b]·s[r]) - (Σ_k minimum[k]·T[k])·(dmin[b]·s[r])
//
// over the blocks b in ascending order, where i are their inputs, and T[k] sums 16 int8. Formats
// that are not Biased have their minima, if any, subtracted from the sum of products.
//
// Sums of integers are exact and every other step is rounded, so all variants give the same bits.
// The generator knows the offsets of the fields.
type blockArgs struct {
	codes unsafe.Pointer // int8 [cols]
	// Of blocks of 32 float32 [cols/32] each, biases only if the format has them; of blocks of 256
	// scales are quant.Whole [cols/256], and biases nothing.
	scales, biases unsafe.Pointer
	cols           int // inputs, whole blocks; a kernel takes as many as it can
	rows           int // of X, up to blockTile
	// x are rows of X, see rounded: in groups of 32, or of 256.
	x [blockTile]unsafe.Pointer
	y [blockTile]float32
}

// blockLanes is how many sums of blocks of 32 there are side by side.
const blockLanes = 8

// blockTile is the most rows of X that a blockKernel takes.
const blockTile = 8

// blockKernel multiplies a row of W by rows of X. a points to a blockArgs. A row of X gets the same
// bits however many are taken together.
type blockKernel func(a *byte)

// blockKind tells formats of blocks apart as far as products are concerned.
type blockKind struct {
	group  int // 16 or 32
	biased bool
}

// blockTable is a variant's kernels: of blocks of 32, biased or not, and of blocks of 256.
type blockTable struct {
	short [2]blockKernel
	whole map[blockKind]blockKernel
	// arrange arranges a row of X for kernels of blocks of 32 with one row, see shortEight: eights
	// of groups, at least one. of are s and S of the groups, and less is Least, negated. nil: there
	// are no such kernels.
	arrange func(dst, x, of *byte, eights, less int)
	// fours is what products of one row of blocks of 256 whose codes have a table take in place of
	// sums of 16: of each four inputs the sum times less. nil: they take what arrangeHalves makes.
	fours func(dst, x *byte, fours, less int)
	// stripes are the functions for stripes, see stripeArgs; nil: there are none.
	stripes *stripeKernels
}

// of returns the kernel for a format.
func (t *blockTable) of(b *quant.Block) blockKernel {
	if b.Len == wholeGroup {
		return t.whole[blockKind{b.Group, b.Biased}]
	}
	if b.Biased {
		return t.short[1]
	}
	return t.short[0]
}

var portableBlocks = func() (t blockTable) {
	for i := range t.short {
		t.short[i] = func(a *byte) { portableShort((*blockArgs)(unsafe.Pointer(a)), i == 1) }
	}
	t.whole = map[blockKind]blockKernel{}
	for _, k := range []blockKind{{16, false}, {16, true}, {32, false}, {32, true}} {
		t.whole[k] = func(a *byte) { portableWhole((*blockArgs)(unsafe.Pointer(a)), k) }
	}
	return t
}()

// portableShort is the definition for blocks of 32.
func portableShort(a *blockArgs, biased bool) {
	codes, groups := unsafe.Slice((*int8)(a.codes), a.cols), a.cols/32
	scales := unsafe.Slice((*float32)(a.scales), groups)
	for r := range a.rows {
		var lanes [blockLanes]float32
		x := unsafe.Slice((*int8)(a.x[r]), a.cols)
		of := unsafe.Slice((*float32)(unsafe.Add(a.x[r], a.cols)), 2*groups)
		for g := range groups {
			part := float32(float32(dotCodes(codes[32*g:32*(g+1)], x[32*g:])) * float32(scales[g]*of[2*g]))
			if biased {
				part += float32(unsafe.Slice((*float32)(a.biases), groups)[g] * of[2*g+1])
			}
			lanes[g%blockLanes] += part
		}
		a.y[r] = sumLanes(&lanes)
	}
}

// portableWhole is the definition for blocks of 256.
func portableWhole(a *blockArgs, kind blockKind) {
	minima := kind.biased || kind.group == 16 // else codes have a sign
	codes, blocks := unsafe.Slice((*int8)(a.codes), a.cols), a.cols/wholeGroup
	wholes := unsafe.Slice((*quant.Whole)(a.scales), blocks)
	for r := range a.rows {
		y := float32(0)
		x := unsafe.Slice((*int8)(a.x[r]), a.cols)
		of := unsafe.Slice((*float32)(unsafe.Add(a.x[r], a.cols)), 2*blocks)
		sums := unsafe.Slice((*int16)(unsafe.Add(a.x[r], a.cols+8*blocks)), a.cols/16)
		for b := range wholes {
			w := &wholes[b]
			total, least := int32(0), int32(0)
			for k := range wholeGroup / 16 {
				at := wholeGroup*b + 16*k
				total += dotCodes(codes[at:at+16], x[at:]) * int32(w.Scales[k])
				if minima {
					least += int32(w.Minima[k]) * int32(sums[16*b+k])
				}
			}
			if !kind.biased {
				y += float32(float32(total-least) * float32(w.D*of[2*b]))
				continue
			}
			part := float32(float32(total) * float32(w.D*of[2*b]))
			part -= float32(float32(least) * float32(w.DMin*of[2*b]))
			y += part
		}
		a.y[r] = y
	}
}

// dotCodes returns Σ q·x over q, whose length is a multiple of 4.
func dotCodes(q, x []int8) (dot int32) {
	for len(q) >= 4 && len(x) >= 4 {
		dot += int32(q[0])*int32(x[0]) + int32(q[1])*int32(x[1]) + int32(q[2])*int32(x[2]) + int32(q[3])*int32(x[3])
		q, x = q[4:], x[4:]
	}
	return dot
}

// rowArgs is what the kernels of one row of X compute: blockArgs, for rows of W as they are stored.
// The generator knows the offsets of the fields.
type rowArgs struct {
	w    unsafe.Pointer // the rows
	rows int            // how many
	// How much each row has: of blocks of 256, blocks; of blocks of 32, eights of them.
	blocks int
	// Of blocks of 256 the row's int8, as arrangeHalves makes them where codes have a table, s and
	// S of blocks, and sums of 16. Of blocks of 32 x is what arrangeRow makes, and the others are
	// nil.
	x, of, sums unsafe.Pointer
	y           unsafe.Pointer // float32 [rows]
	// back is how many bytes before the end of the last eight another eight begins that ends with
	// the row, 0 if the eights are the row.
	back  int
	pages int // 1: they are prefetched by pages, too, see farChoice
}

// mulOne is mulBlocks for one row of X. It returns false if there is no kernel for such rows.
func (k *kernels) mulOne(s *blockScratch, w *matrix, o0, o1 int, x []byte, y []float32) bool {
	one, b := k.codings[w.format.Coding()].oneRow, w.format.Block()
	if one == nil || w.cols < wholeGroup {
		return false
	}
	s.row = rowArgs{w: unsafe.Pointer(&w.row(o0)[0]), rows: o1 - o0, blocks: w.cols / wholeGroup, y: unsafe.Pointer(&y[o0:o1][0])}
	if b.Len == wholeGroup {
		s.row.x, s.row.of = unsafe.Pointer(&x[0]), unsafe.Pointer(&x[w.cols])
		s.row.sums = unsafe.Pointer(&x[w.cols+8*s.row.blocks])
		switch {
		case b.Table == nil:
		case k.blocks.fours != nil:
			sums := growBytes(&s.arranged, w.cols)
			k.blocks.fours(&sums[0], &x[0], w.cols/64, -int(b.Unsigned()))
			s.row.sums = unsafe.Pointer(&sums[0])
		default:
			s.row.x = unsafe.Pointer(&arrangeHalves(growBytes(&s.arranged, 2*w.cols), x)[0])
		}
	} else {
		mem := growBytes(&s.arranged, arrangedBytes(w.cols))
		k.arrangeRow(s, mem, w.cols, x, b)
		s.row.x, s.row.back = unsafe.Pointer(&mem[0]), backBytes(w.cols, b)
	}
	s.far.time(w.rowBytes*s.row.rows, func(pages bool) {
		if pages {
			s.row.pages = 1
		}
		one((*byte)(unsafe.Pointer(&s.row)))
	})
	return true
}

// arrangeHalves arranges a row of X for kernels of one row of blocks of 256 whose codes stand for
// values of a table. Each block becomes two: of two groups of 32 the first halves and then the
// second ones, as the low and the high bits of 32 bytes of W have their codes; and the same without
// a sign.
func arrangeHalves(dst, x []byte) []byte {
	const quarter = 64 // of a block, two groups
	for at := 0; 2*at < len(dst); at += quarter {
		to := dst[2*at-at%wholeGroup:]
		for i, from := range [...]int{0, 8, 32, 40, 16, 24, 48, 56} {
			v := binary.LittleEndian.Uint64(x[at+from:])
			negative := v >> 7 & 0x0101010101010101
			binary.LittleEndian.PutUint64(to[8*i:], v)
			// No input is -128, so nothing is carried from one to the next.
			binary.LittleEndian.PutUint64(to[wholeGroup+8*i:], v^negative*0xff+negative)
		}
	}
	return dst
}

// sumLanes adds up the lanes of a row of X in blocks of 32.
func sumLanes(y *[blockLanes]float32) float32 {
	return ((y[0] + y[4]) + (y[2] + y[6])) + ((y[1] + y[5]) + (y[3] + y[7]))
}

// blockScratch is one thread's memory for products of blocks.
type blockScratch struct {
	args           blockArgs
	row            rowArgs
	far            farChoice
	many           manyArgs
	codes          []int8
	scales, biases []float32
	wholes         []quant.Whole
	// See kernels.arrangeRow and arrangeHalves: what they arrange, and the groups of the row that
	// are not eights.
	arranged []byte
	stripe   stripeScratch
	last     [wholeGroup]byte
	of       [8 * blockLanes]byte
	apart    []byte // rows of W, see shortApart
}

// parts returns memory for rows of w that are taken apart.
func (s *blockScratch) parts(w *matrix, rows int) (codes []int8, scales, biases []float32) {
	groups := w.cols / w.format.Block().Group
	return grow(&s.codes, rows*w.cols), grow(&s.scales, rows*groups), grow(&s.biases, rows*groups)
}

// mulSplit is multiply for blocks with one row of X in float32.
func (k *kernels) mulSplit(s *blockScratch, w *matrix, o0, o1 int, x, y []float32) {
	codes, scales, biases := s.parts(w, 1)
	stored := &k.codings[w.format.Coding()]
	for o := o0; o < o1; o++ {
		stored.split(codes, scales, biases, w.row(o))
		y[o] = stored.oneSplit(codes, scales, biases, x)
	}
}

// How blocks of several rows are multiplied: rows of W that are taken apart together, and bytes of
// rows of X that stay in the first-level cache beside one of them.
const (
	apartRows  = 8
	apartCache = 24 << 10
)

// besideW returns how many rows of X, of x bytes each, stay beside a row of W of w bytes.
func besideW(x, w int) int { return min(max((apartCache-w)/x&^1, 2), blockTile) }

// mulBlocks is multiply for blocks with X in int8. Some rows of W are taken apart together, for a
// block of rows of X that stays in the cache while all rows pass.
func (k *kernels) mulBlocks(s *blockScratch, w *matrix, o0, o1 int, in, out *rowList, i0, i1 int) {
	b, stored := w.format.Block(), &k.codings[w.format.Coding()]
	if i1-i0 == 1 && k.mulOne(s, w, o0, o1, in.bytes(i0), out.floats(i0)) {
		return
	}
	if k.blocks.stripes != nil && i1-i0 >= k.blocks.stripes.of(b).least && w.cols >= wholeGroup {
		k.mulStripes(s, w, o0, o1, in, out, i0, i1)
		return
	}
	if stored.many != nil && w.cols >= wholeGroup {
		k.mulShort(s, w, o0, o1, in, out, i0, i1)
		return
	}
	a, multiply := &s.args, k.blocks.of(b)
	a.cols = w.cols
	tile, per := besideW(in.width, w.cols), max(blockTile, blockX/in.width)
	for ; i0 < i1; i0 += per {
		end := min(i0+per, i1)
		for o := o0; o < o1; o += apartRows {
			rows := min(apartRows, o1-o)
			s.takeApart(stored, w, o, rows)
			for i := i0; i < end; i += a.rows {
				a.rows = min(tile, end-i)
				for r := range a.rows {
					a.x[r] = unsafe.Pointer(&in.bytes(i + r)[0])
				}
				for j := range rows {
					s.point(w, j)
					multiply((*byte)(unsafe.Pointer(a)))
					for r := range a.rows {
						out.floats(i + r)[o+j] = a.y[r]
					}
				}
			}
		}
	}
}

// takeApart takes rows of w from o on apart.
func (s *blockScratch) takeApart(stored *codingKernels, w *matrix, o, rows int) {
	b := w.format.Block()
	codes, scales, biases := s.parts(w, apartRows)
	blocks, groups := w.cols/b.Len, w.cols/b.Group
	wholes := grow(&s.wholes, apartRows*blocks)
	for j := range rows {
		row := codes[j*w.cols:][:w.cols]
		if b.Len == wholeGroup {
			stored.whole(row, wholes[j*blocks:][:blocks], w.row(o+j))
		} else {
			stored.split(row, scales[j*groups:][:groups], biases[j*groups:][:groups], w.row(o+j))
		}
	}
}

// point sets s.args to row j of those that were taken apart.
func (s *blockScratch) point(w *matrix, j int) {
	b, a := w.format.Block(), &s.args
	a.codes = unsafe.Pointer(&s.codes[:w.cols*(j+1)][w.cols*j])
	if b.Len == wholeGroup {
		n := w.cols / b.Len
		a.scales, a.biases = unsafe.Pointer(&s.wholes[:n*(j+1)][n*j]), nil
		return
	}
	n := w.cols / b.Group
	a.scales, a.biases = unsafe.Pointer(&s.scales[:n*(j+1)][n*j]), unsafe.Pointer(&s.biases[:n*(j+1)][n*j])
}
