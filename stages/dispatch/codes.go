package dispatch

import "github.com/moeflux/moeflux-actor/gpu"

// codeStrip is what a strip of 8 bits has beside its codes.
type codeStrip struct {
	// where the first group's begin in a page, in bytes; how many float32 a group has
	scales, pageRows int
	channels, group  int // of a row; of those, that share a scale
}

// packedBytes is the size of a row in host memory that is not float32: its codes, then its scales.
func (s *codeStrip) packedBytes() int { return s.channels + 4*(s.channels/s.group) }

// codeRows are rows of 8 bits in host memory, on their way between a state and float32.
type codeRows struct {
	codes  []byte    // [rows, width]
	scales []float32 // [groups, rows]
	row    []float32 // [width]
}

// stripOf returns how width channels from channel at on of a layer's keys or values, which begin at
// offset, lie in a page.
func stripOf(kv *gpu.KVLayout, offset, at, width int) strip {
	if kv.Format == gpu.KVF32 {
		return strip{at: offset + 4*at, stride: 4 * kv.Dim, width: 4 * width}
	}
	return strip{at: offset + at, stride: kv.Dim, width: 4 * width, codes: &codeStrip{
		scales: offset + kv.ScalesAt() + 4*(at/kv.Group*kv.PageRows), pageRows: kv.PageRows, channels: width, group: kv.Group,
	}}
}

// moveCodes copies rows of a strip of 8 bits, from row from on of a page, to host memory, or back.
// What came out and goes in again is the same to the bit, also if it was float32 there (gpu.KV).
func (x *Image) moveCodes(page gpu.View, s *strip, from, rows int, host []byte, up bool) error {
	width := s.codes.channels
	c, groups := &x.spare, width/s.codes.group
	c.codes, c.scales, c.row = sized(c.codes, rows*width), sized(c.scales, rows*groups), sized(c.row, width)
	switch {
	case up && x.Packed:
		c.unpack(host, rows)
	case up:
		c.round(host, rows, s.codes.group)
	}
	x.pieces = x.pieces[:0]
	x.addRows(page.At(s.at+from*s.stride), strip{stride: s.stride, width: width}, rows, c.codes)
	for g := range groups {
		x.pieces = append(x.pieces, Piece{Device: page.At(s.codes.scales + 4*(g*s.codes.pageRows+from)), Host: gpu.FloatBytes(c.scales[g*rows : (g+1)*rows])})
	}
	err := x.exchange(up)
	x.pieces = x.pieces[:0]
	switch {
	case err != nil || up:
	case x.Packed:
		c.pack(host, rows)
	default:
		c.widen(host, rows, s.codes.group)
	}
	return err
}

// pack writes rows of codes and scales.
func (c *codeRows) pack(host []byte, rows int) {
	width, groups := len(c.row), len(c.scales)/rows
	for r := range rows {
		host = host[copy(host, c.codes[r*width:][:width]):]
		for g := range groups {
			host = host[copy(host, gpu.FloatBytes(c.scales[g*rows+r:][:1])):]
		}
	}
}

// unpack takes rows of codes and scales.
func (c *codeRows) unpack(host []byte, rows int) {
	width, groups := len(c.row), len(c.scales)/rows
	for r := range rows {
		host = host[copy(c.codes[r*width:][:width], host):]
		for g := range groups {
			host = host[copy(gpu.FloatBytes(c.scales[g*rows+r:][:1]), host):]
		}
	}
}

// round makes codes of rows of float32.
func (c *codeRows) round(host []byte, rows, group int) {
	width := len(c.row)
	for r := range rows {
		copy(gpu.FloatBytes(c.row), host[4*r*width:])
		for at := 0; at < width; at += group {
			c.scales[at/group*rows+r] = gpu.KVQuantise(c.codes[r*width+at:][:group], c.row[at:at+group])
		}
	}
}

// widen makes rows of float32 of codes.
func (c *codeRows) widen(host []byte, rows, group int) {
	width := len(c.row)
	for r := range rows {
		for at := 0; at < width; at += group {
			gpu.KVWiden(c.row[at:], c.codes[r*width+at:][:group], c.scales[at/group*rows+r])
		}
		copy(host[4*r*width:], gpu.FloatBytes(c.row))
	}
}

// sized returns n elements, those of s if it has room.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
