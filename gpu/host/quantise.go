package host

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
)

// quantiseGo rounds groups of inputs to 8 bits. q [groups, group] is the integer nearest to x/s,
// ties to even, with s = max|x|/127 over the group. scales is [groups, 2]: s, and s times the sum
// of the group's q. Both are NaN for a group that contains an infinity or NaN. A group whose inputs
// are all below 127·2^-126 counts as zeros.
func quantiseGo(q *int8, scales, x *float32, group, groups int) {
	codes, inputs := unsafe.Slice(q, group*groups), unsafe.Slice(x, group*groups)
	numbers := unsafe.Slice(scales, 2*groups)
	for ; len(codes) > 0; codes, inputs, numbers = codes[group:], inputs[group:], numbers[2:] {
		most := uint32(0)
		for _, v := range inputs[:group] {
			most = max(most, math.Float32bits(v)&^(1<<31))
		}
		if most < gpu.Int8LeastBits || most >= gpu.Int8InfiniteBits {
			clear(codes[:group])
			numbers[0], numbers[1] = 0, 0
			if most >= gpu.Int8InfiniteBits {
				numbers[0], numbers[1] = float32(math.NaN()), float32(math.NaN())
			}
			continue
		}
		s, sum := math.Float32frombits(most)/127, int32(0)
		for i, v := range inputs[:group] {
			c := wholeNumber(v / s)
			codes[i] = int8(c)
			sum += c
		}
		numbers[0], numbers[1] = s, float32(s*float32(sum))
	}
}

// quantiser returns what rounds groups of a size. Assembly takes 32 inputs at a time.
func (k *kernels) quantiser(group int) func(q *int8, scales, x *float32, group, groups int) {
	if group%32 != 0 {
		return quantiseGo
	}
	return k.quantise
}

// wholeNumber returns the integer nearest to v, ties to even, for |v| below 2^22: the float32 sum
// has no room for a fraction.
func wholeNumber(v float32) int32 {
	const shift = 3 << 22
	return int32(math.Float32bits(float32(v+shift))) - 0x4b400000
}

// leastGroup is the size of the smallest groups, and groupSizes how many sizes there are, each
// twice the one before.
const (
	leastGroup = 16
	groupSizes = 5
)

// groupAt returns the index in tables of groups of n.
func groupAt(n int) int { return bits.TrailingZeros(uint(n / leastGroup)) }

// rounded is rows of X as int8 kernels take them, for each size of the groups in which they are
// rounded.
type rounded struct {
	cols int
	mem  [groupSizes][]byte // see groupAt; kept
}

// wholeGroup is the size of groups of inputs of matrices in blocks of 256.
const wholeGroup = 256

// recordBytes returns the bytes of a row: int8 [cols], scales and sums, padded to whole cache
// lines. In groups of wholeGroup the sums of each 16 int8, as int16, come after that.
func recordBytes(cols, group int) int {
	n := cols + 8*(cols/group)
	if group == wholeGroup {
		n += 2 * (cols / 16)
	}
	return (n + lineBytes - 1) &^ (lineBytes - 1)
}

// rows returns the rows that are rounded in groups of one size.
func (r *rounded) rows(group int) rowList {
	n := recordBytes(r.cols, group)
	return rowList{mem: r.mem[groupAt(group)], stride: n, width: n, int8s: true}
}

// roundTask fills a rounded; a chunk is some rows of the list.
type roundTask struct {
	kernels *kernels
	in      rowList
	out     *rounded
	groups  [groupSizes]bool // see groupAt
	count   int              // of the list
	per     int
}

func (t *roundTask) do(_ *scratch, chunk int) {
	for i := chunk * t.per; i < min((chunk+1)*t.per, t.count); i++ {
		x := t.in.floats(i)[:t.out.cols]
		for g, wanted := range t.groups {
			if !wanted {
				continue
			}
			group := leastGroup << g
			n := recordBytes(t.out.cols, group)
			record := t.out.mem[g][t.in.row(i)*n:][:n]
			t.kernels.quantiser(group)((*int8)(unsafe.Pointer(&record[0])), (*float32)(unsafe.Pointer(&record[t.out.cols])), &x[0],
				group, t.out.cols/group)
			if group == wholeGroup {
				sumSixteens(record, t.out.cols)
			}
		}
	}
}

// sumSixteens writes the sums of each 16 int8 of a record of groups of wholeGroup.
func sumSixteens(record []byte, cols int) {
	at := cols + 8*(cols/wholeGroup)
	for i := 0; i < cols; i += 16 {
		sum := int16(0)
		for _, q := range record[i : i+16] {
			sum += int16(int8(q))
		}
		binary.LittleEndian.PutUint16(record[at+i/8:], uint16(sum))
	}
}

// round fills out with count rows of in's list, rounded in each size of groups that is wanted. Rows
// have cols inputs.
func (x *executor) round(out *rounded, in *rowList, count, rows, cols int, groups [groupSizes]bool) {
	out.cols = cols
	for g, wanted := range groups {
		if wanted {
			growBytes(&out.mem[g], rows*recordBytes(cols, leastGroup<<g))
			out.mem[g] = out.mem[g][:cap(out.mem[g])]
		}
	}
	t := &x.rounding
	*t = roundTask{kernels: x.kernels, in: *in, out: out, groups: groups, count: count, per: x.width(count, 1)}
	x.parallel(t, chunks(count, t.per), count*cols/x.kernels.rate)
	*t = roundTask{}
}
