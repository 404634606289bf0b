package gpu

import (
	"fmt"
	"math"
)

// KVLayout says where in the pages of a key-value cache one layer's part lies, and in which form.
// Page p of a sequence holds positions p·PageRows …: keys [PageRows, Dim] from KOffset bytes of
// page p on, values [PageRows, VDim] likewise from VOffset on. Dim is key-value heads times head
// dimension. All sequences of an operation share one layout.
//
// With KVF32 they are float32. With KVInt8 they are codes int8 [PageRows, Dim], and from ScalesAt
// bytes further on scales float32 [Dim/Group, PageRows]: a value is code·scale. Group divides
// the channels of a head. For the channels x of one position and group,
//
//	scale = max|x|/127, the lowest 8 bits of its significand cleared     code = x/scale, the nearest whole number, ties to even
//
// with both quotients rounded to float32. So 127·scale is exact, the largest channel has the code
// ±127, and what the cache holds, rounded again, gives the same codes and scale: rows may leave as
// float32 and come back. A group whose channels all are below 127·2^-126 has the scale 0 and codes
// 0, one with a channel that is not finite has the scale NaN and codes 0.
type KVLayout struct {
	PageRows, Dim    int
	VDim             int // channels of a row of values; 0: Dim
	KOffset, VOffset int // bytes
	Format           KVFormat
	Group            int // channels that share a scale; 0 with KVF32
}

// KV is one layer's part of one sequence's cache.
type KV struct {
	KVLayout
	Pages Pages
}

// KVFormat is how a cache holds keys and values.
type KVFormat uint8

// The formats.
const (
	KVF32 KVFormat = iota // float32
	// whole numbers of 8 bits, with one float32 scale for each Group channels of a position
	KVInt8
)

func (f KVFormat) String() string {
	switch f {
	case KVF32:
		return "f32"
	case KVInt8:
		return "int8"
	}
	return fmt.Sprintf("kv(%d)", uint8(f))
}

// kvAlign is what the sizes of codes and scales are rounded up to, so that a kernel that reads a
// vector at the end of either stays inside the page.
const kvAlign = 64

func kvLine(n int) int { return (n + kvAlign - 1) / kvAlign * kvAlign }

// ScalesAt returns where the scales of keys or values begin, in bytes from their codes; KVInt8
// only.
func (kv *KVLayout) ScalesAt() int { return kvLine(kv.PageRows * kv.Dim) }

// Groups returns how many scales a row has; KVInt8 only.
func (kv *KVLayout) Groups() int { return kv.Dim / kv.Group }

// Values returns the layout as values see it: with their channels in Dim.
func (kv *KVLayout) Values() KVLayout {
	v := *kv
	if v.VDim != 0 {
		v.Dim, v.VDim = v.VDim, 0
	}
	return v
}

// Values returns the cache as values see it.
func (kv *KV) Values() KV { return KV{kv.KVLayout.Values(), kv.Pages} }

// FirstOf returns the first position that a row at position pos attends to with a window, or
// without one, 0.
func FirstOf(pos, window int) int {
	if window <= 0 {
		return 0
	}
	return max(0, pos+1-window)
}

// PartBytes returns how many bytes of a page the keys take, and the values if they have as many
// channels.
func (kv *KVLayout) PartBytes() int {
	if kv.Format == KVInt8 {
		return kv.ScalesAt() + kvLine(4*kv.PageRows*kv.Groups())
	}
	return 4 * kv.PageRows * kv.Dim
}

// The bits of the largest |x| of a group that is rounded to 8 bits: from Int8LeastBits on its scale
// is a normal number, from Int8InfiniteBits on it is not finite. shaders/append.metal and the
// generator of gpu/host, which cannot import them, have them once more.
const (
	Int8LeastBits    = 0x03fe0000 // 127·2^-126
	Int8InfiniteBits = 0x7f800000
)

// KVQuantise rounds a group of channels to 8 bits as KVInt8 says: it fills codes, as long as x, and
// returns the scale.
func KVQuantise(codes []byte, x []float32) (scale float32) {
	most := uint32(0)
	for _, v := range x {
		most = max(most, math.Float32bits(v)&^(1<<31))
	}
	switch codes = codes[:len(x)]; {
	case most >= Int8InfiniteBits:
		clear(codes)
		return math.Float32frombits(0x7fc00000)
	case most < Int8LeastBits:
		clear(codes)
		return 0
	}
	scale = math.Float32frombits(math.Float32bits(math.Float32frombits(most)/127) &^ 0xff)
	for i, v := range x {
		// The sum has no room for fractions: it is rounded to the nearest whole number, ties to
		// even, in its low bits.
		codes[i] = byte(math.Float32bits(v/scale + 3<<22))
	}
	return scale
}

// KVWiden writes what codes and their scale stand for to dst, as long as codes: exact products.
func KVWiden(dst []float32, codes []byte, scale float32) {
	dst = dst[:len(codes)]
	for i, c := range codes {
		dst[i] = float32(int8(c)) * scale
	}
}
