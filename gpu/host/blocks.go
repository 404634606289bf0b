package host

import "unsafe"

// blockArgs is what a blockKernel computes, of one row of W for rows r of X:
//
//	y[r] = Σ_g (Σ_i q[i]·x[r][i])·(scale[g]·s[r]) + bias[g]·S[r]   over the groups g of inputs i
//
// where s is the scale of the 32 inputs that g is among, and S is s times the sum of g's int8. Each
// step is rounded. Groups whose numbers are equal modulo 8 are added up in ascending order, in a lane
// of y, and then the lanes, so that all variants give the same bits. The generator knows the offsets
// of the fields.
type blockArgs struct {
	codes          unsafe.Pointer // int8 [cols]
	scales, biases unsafe.Pointer // float32 [cols/group]; biases only if the format has them
	cols           int            // inputs, a multiple of 32; a kernel takes as many as it can
	rows           int            // of X, up to blockTile
	// x are rows of X: int8 [cols], followed for each 32 of them by float32 s and S.
	x [blockTile]unsafe.Pointer
	y [blockTile][blockLanes]float32
}

// blockLanes is how many groups are added up side by side.
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

// at returns the kind's place in a blockTable.
func (k blockKind) at() int {
	at := 0
	if k.group == 32 {
		at = 2
	}
	if k.biased {
		at++
	}
	return at
}

// blockTable is a variant's kernels by kind.
type blockTable [4]blockKernel

var portableBlocks = func() (t blockTable) {
	for _, k := range []blockKind{{16, false}, {16, true}, {32, false}, {32, true}} {
		t[k.at()] = func(a *byte) { portableBlock((*blockArgs)(unsafe.Pointer(a)), k) }
	}
	return t
}()

// portableBlock is the definition.
func portableBlock(a *blockArgs, k blockKind) {
	for r := range a.rows {
		a.y[r] = [blockLanes]float32{}
	}
	a.add(k, 0)
}

// add adds the groups of inputs from input first on.
func (a *blockArgs) add(k blockKind, first int) {
	codes, groups := unsafe.Slice((*int8)(a.codes), a.cols), a.cols/k.group
	scales := unsafe.Slice((*float32)(a.scales), groups)
	var biases []float32
	if k.biased {
		biases = unsafe.Slice((*float32)(a.biases), groups)
	}
	for r := range a.rows {
		x := unsafe.Slice((*int8)(a.x[r]), a.cols)
		of := unsafe.Slice((*float32)(unsafe.Add(a.x[r], a.cols)), a.cols/16)
		for g := first / k.group; g < groups; g++ {
			at := g * k.group
			s := of[at/32*2]
			dot, sum := dotCodes(codes[at:at+k.group], x[at:at+k.group])
			part := float32(float32(dot) * float32(scales[g]*s))
			if k.biased {
				part += float32(biases[g] * float32(s*float32(sum)))
			}
			a.y[r][g%blockLanes] += part
		}
	}
}

// sumLanes adds up the lanes of a row of X.
func sumLanes(y *[blockLanes]float32) float32 {
	return ((y[0] + y[4]) + (y[2] + y[6])) + ((y[1] + y[5]) + (y[3] + y[7]))
}

// dotCodes returns Σ q·x and Σ x. Both have the same length, a multiple of 4.
func dotCodes(q, x []int8) (dot, sum int32) {
	for len(q) >= 4 && len(x) >= 4 {
		dot += int32(q[0])*int32(x[0]) + int32(q[1])*int32(x[1]) + int32(q[2])*int32(x[2]) + int32(q[3])*int32(x[3])
		sum += int32(x[0]) + int32(x[1]) + int32(x[2]) + int32(x[3])
		q, x = q[4:], x[4:]
	}
	return dot, sum
}

// blockScratch is one thread's memory for products of blocks.
type blockScratch struct {
	args           blockArgs
	codes          []int8
	scales, biases []float32
}

// parts returns memory for a row of w that is taken apart.
func (s *blockScratch) parts(w *matrix) (codes []int8, scales, biases []float32) {
	groups := w.cols / w.format.Block().Group
	return grow(&s.codes, w.cols), grow(&s.scales, groups), grow(&s.biases, groups)
}

// mulSplit is multiply for blocks with one row of X in float32.
func (k *kernels) mulSplit(s *blockScratch, w *matrix, o0, o1 int, x, y []float32) {
	codes, scales, biases := s.parts(w)
	stored := &k.codings[w.format.Coding()]
	for o := o0; o < o1; o++ {
		stored.split(codes, scales, biases, w.row(o))
		y[o] = stored.oneSplit(codes, scales, biases, x)
	}
}

// mulBlocks is multiply for blocks with X in int8. Each row of W is taken apart once for a block of
// rows of X, which stays in the cache while all rows pass.
func (k *kernels) mulBlocks(s *blockScratch, w *matrix, o0, o1 int, in, out *rowList, i0, i1 int) {
	b := w.format.Block()
	codes, scales, biases := s.parts(w)
	a, multiply := &s.args, k.blocks[blockKind{b.Group, b.Biased}.at()]
	a.codes, a.scales, a.biases = unsafe.Pointer(&codes[0]), unsafe.Pointer(&scales[0]), unsafe.Pointer(&biases[0])
	a.cols = w.cols
	split := k.codings[w.format.Coding()].split
	per := max(blockTile, blockX/in.width)
	for ; i0 < i1; i0 += per {
		end := min(i0+per, i1)
		for o := o0; o < o1; o++ {
			split(codes, scales, biases, w.row(o))
			for i := i0; i < end; i += a.rows {
				a.rows = min(blockTile, end-i)
				for r := range a.rows {
					a.x[r] = unsafe.Pointer(&in.bytes(i + r)[0])
				}
				multiply((*byte)(unsafe.Pointer(a)))
				for r := range a.rows {
					out.floats(i + r)[o] = sumLanes(&a.y[r])
				}
			}
		}
	}
}
