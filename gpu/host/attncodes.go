package host

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
)

// A device that rounds the inputs of products rounds queries too, where the cache holds keys in 8
// bits: each query in the groups of channels that share a scale of a key, as quantiseGo rounds. So
// a score is a sum of whole numbers, which is exact, times the scales of both, for each group.
//
// A query takes up the memory of its float32 [dim]: int8 [dim], then for each group float32 s, its
// scale, and int32, -128 times the sum of its codes, which sums begin with where keys count as
// bytes without a sign. A block's keys are words of four channels [dim/4, attnBlock], in the memory
// of its float32, and their scales [dim/group, attnBlock].

// portableDotCodes multiplies rows of q by a block's keys, all attnBlock of them:
//
//	scores[r, j] = Σ_g (Σ_i q[r, g, i]·k[j, g, i] · s[r, g]) · scales[g, j]
//
// Every product and sum outside of the inner one is rounded by itself, groups in ascending order.
// So all variants give the same bits. Queries begin qStride bytes apart. It ignores what there is
// to fetch.
func portableDotCodes(scores []float32, q, words []byte, scales []float32, qStride, group, groups, rows int, _ *byte) {
	for r := range rows {
		y, x := scores[r*attnBlock:][:attnBlock], q[r*qStride:]
		clear(y)
		for g := range groups {
			s := math.Float32frombits(binary.LittleEndian.Uint32(x[group*groups+8*g:]))
			for j := range y {
				sum := int32(0)
				for i := g * group; i < (g+1)*group; i += 4 {
					k := words[i*attnBlock+4*j:][:4]
					sum += int32(int8(x[i]))*int32(int8(k[0])) + int32(int8(x[i+1]))*int32(int8(k[1])) +
						int32(int8(x[i+2]))*int32(int8(k[2])) + int32(int8(x[i+3]))*int32(int8(k[3]))
				}
				y[j] += float32(float32(float32(sum)*s) * scales[g*attnBlock+j])
			}
		}
	}
}

// bytesIn returns the memory of x.
func bytesIn(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

// roundQuery writes x, rounded in groups, to the memory of as many float32.
func (k *kernels) roundQuery(dst, x []float32, group int) {
	record, dim := bytesIn(dst), len(x)
	groups := dim / group
	k.quantiser(group)((*int8)(unsafe.Pointer(&record[0])), (*float32)(unsafe.Pointer(&record[dim])), &x[0], group, groups)
	for g := range groups {
		numbers := gpu.Floats(record[dim+8*g:], 2)
		start := uint32(0)
		if s, times := numbers[0], numbers[1]; s > 0 { // not of zeros, nor of what is not finite
			start = uint32(int32(-128 * math.RoundToEven(float64(times)/float64(s))))
		}
		numbers[1] = math.Float32frombits(start)
	}
}

// groups is how many scales a key has.
func (a *queries) groups() int {
	if a.group == 0 {
		return 0
	}
	return a.dim / a.group
}

// loadKeys brings the current head's keys, channels from at on, at n positions from p on but those
// before p+from, to kt, and if they are multiplied as codes, their scales. p is a multiple of
// attnBlock.
func (a *queries) loadKeys(kv *gpu.KV, at, p, from, n int) {
	if a.group == 0 {
		a.transposeKeys(a.kt, a.pad, kv, at, a.dim, p, from, n)
		return
	}
	for j := from; j < n; {
		page, row := (p+j)/kv.PageRows, (p+j)%kv.PageRows
		run := min(n-j, kv.PageRows-row)
		words := floatsAt(kv.Pages.At(page).At(kv.KOffset), kv.PageRows*kv.Dim/4)[(row*kv.Dim+at)/4:]
		a.transposeWords(j, words, kv.Dim, run, min(kv.PageRows-row, attnBlock-j))
		_, scales := codes(kv, page, kv.KOffset)
		for g := range a.groups() {
			copy(a.scales[g*attnBlock+j:][:run], scales[(at/a.group+g)*kv.PageRows+row:])
		}
		j += run
	}
}

// transposeWords writes rows of codes, stride bytes apart, to the columns of kt from j on. It may
// take up to most rows: what comes after the last is not looked at, and whole vectors are quicker.
func (a *queries) transposeWords(j int, words []float32, stride, rows, most int) {
	if whole := (rows + a.lanes - 1) / a.lanes * a.lanes; whole <= most {
		rows = whole
	}
	a.transposeAll(a.kt[j:], words, attnBlock, stride/4, rows, a.dim/4)
}

// gatherCodes is loadKeys for n listed positions.
func (a *queries) gatherCodes(kv *gpu.KV, at int, l *chosenList, p, n int) {
	rows := bytesIn(a.packed)
	for i := range n {
		position := l.at(p + i)
		row := position % kv.PageRows
		q, scales := codes(kv, position/kv.PageRows, kv.KOffset)
		copy(rows[i*a.dim:(i+1)*a.dim], q[row*kv.Dim+at:])
		for g := range a.groups() {
			a.scales[g*attnBlock+i] = scales[(at/a.group+g)*kv.PageRows+row]
		}
	}
	a.transposeWords(0, a.packed, a.dim, n, attnBlock)
}

// scoreCodes multiplies rows of the current head's queries from first on by the keys in kt. With
// few queries it also fetches what comes next.
func (a *queries) scoreCodes(first, rows int) {
	lines := a.idle
	if a.next != nil && a.next.line() {
		lines = &a.next.lines
	}
	a.dotCodes(a.scores[first*attnBlock:], bytesIn(a.q[first*a.dim:]), bytesIn(a.kt), a.scales, 4*a.dim, a.group, a.groups(), rows,
		(*byte)(unsafe.Pointer(lines)))
}
