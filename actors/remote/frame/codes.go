package frame

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Devices that round the inputs of experts to 8 bits make of each group of them integers c and a
// scale s, with s = m/127 for the largest magnitude m, and use nothing else of them. So a row can
// go out as c and m: a quarter of the bytes. The host makes numbers of them, c·s, but ±m of ±127,
// and its device rounds these. The largest magnitude is m again, and with it s has the same bits;
// c·s/s is c but for an error far below a half. With s in place of m that would not hold: m is not
// always 127·s, and m/127 may be the next number.
//
// A group with an infinity or NaN is NaN, and one whose scale would not be a normal number is 0: as
// such devices have it.

// The bits of the largest magnitude of a group, as package gpu has them for devices: from leastBits
// on the scale is a normal number, from infiniteBits on it is not finite.
const (
	leastBits    = 0x03fe0000
	infiniteBits = 0x7f800000
)

// leastGroup and mostGroup bound the numbers of a group, a power of two.
const leastGroup, mostGroup = 16, 256

// RowBytes returns how many bytes a row of an Ask takes, by the numbers of a group; 0: it goes out
// as it is.
func RowBytes(hidden, group int) int {
	if group == 0 {
		return 4 * hidden
	}
	return hidden + hidden/group*4
}

// appendRows appends rows, as they are or rounded: the largest magnitudes of all groups, then all
// codes.
func appendRows(dst []byte, rows []float32, group int) []byte {
	if group == 0 {
		return append(dst, bytesOf(rows)...)
	}
	from, codes := len(dst), len(dst)+len(rows)/group*4
	dst = append(dst, make([]byte, codes-from+len(rows))...)
	for at := 0; at < len(rows); at += group {
		m := roundGroup(dst[codes+at:][:group], rows[at:at+group])
		binary.LittleEndian.PutUint32(dst[from+at/group*4:], m)
	}
	return dst
}

// roundGroup makes codes, all 0 so far, of numbers, and returns the bits of the largest magnitude.
func roundGroup(codes []byte, x []float32) uint32 {
	var m [4]uint32                     // of every fourth number each, so that one comparison need not wait for another
	for i := 0; i+4 <= len(x); i += 4 { // groups are multiples of 4
		y := x[i : i+4 : i+4]
		m[0] = max(m[0], math.Float32bits(y[0])&^(1<<31))
		m[1] = max(m[1], math.Float32bits(y[1])&^(1<<31))
		m[2] = max(m[2], math.Float32bits(y[2])&^(1<<31))
		m[3] = max(m[3], math.Float32bits(y[3])&^(1<<31))
	}
	most := max(m[0], m[1], m[2], m[3])
	switch {
	case most < leastBits:
		return 0
	case most >= infiniteBits:
		return math.Float32bits(float32(math.NaN()))
	}
	s := math.Float32frombits(most) / 127
	codes = codes[:len(x)]
	for i, v := range x {
		// The sum has no room for fractions: it is rounded to the nearest whole number, ties to
		// even, in its low bits.
		codes[i] = byte(math.Float32bits(v/s + 3<<22))
	}
	return most
}

// readRows is the other side of appendRows: numbers that are rounded to the same codes.
func readRows(rows []float32, b []byte, group int) error {
	if group == 0 {
		copy(bytesOf(rows), b)
		return nil
	}
	codes := b[len(rows)/group*4:]
	for at := 0; at < len(rows); at += group {
		m := math.Float32frombits(binary.LittleEndian.Uint32(b[at/group*4:]))
		if m < 0 || math.IsInf(float64(m), 0) {
			return fmt.Errorf("%w: a largest magnitude of %g", ErrContent, m)
		}
		s := m / 127
		for i, c := range codes[at:][:group] {
			switch c := int8(c); {
			case m != m || c > -127 && c < 127:
				rows[at+i] = float32(c) * s
			case c < 0:
				rows[at+i] = -m
			default:
				rows[at+i] = m
			}
		}
	}
	return nil
}
