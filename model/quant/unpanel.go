package quant

import "encoding/binary"

// ToRows writes a part of a [rows, cols] matrix in layout Panels to dst in layout Rows. It is the
// inverse of ToPanels and treats pieces and memory in the same way.
func (f Format) ToRows(p Part, dst, src []byte, rows, cols int) {
	f.byPanel(p, dst, src, rows, cols, f.rowsOfCodes, rowsOfNumbers)
}

// rowsOfCodes splits a panel of codes into 16 rows, width bytes each. It handles two successive
// words of a row at once.
func (f Format) rowsOfCodes(dst, src []byte, width int) {
	at := 0
	for ; at+8 <= width; at += 8 {
		pair := (*[2 * 4 * PanelRows]byte)(src[at*PanelRows:])
		for lane := range PanelRows {
			low, high := binary.LittleEndian.Uint32(pair[4*lane:]), binary.LittleEndian.Uint32(pair[4*PanelRows+4*lane:])
			binary.LittleEndian.PutUint64(dst[lane*width+at:], f.inOrder(uint64(low)|uint64(high)<<32))
		}
	}
	for ; at < width; at += 4 { // an odd number of words
		for lane := range PanelRows {
			x := f.inOrder(uint64(binary.LittleEndian.Uint32(src[at*PanelRows+4*lane:])))
			binary.LittleEndian.PutUint32(dst[lane*width+at:], uint32(x))
		}
	}
}

// inOrder undoes the interleaving of the codes of two words.
func (f Format) inOrder(x uint64) uint64 {
	switch f.Bits() {
	case 2:
		return interleave2(x) // transposing twice
	case 4: // the steps of interleave4, each its own inverse, in reverse order
		t := (x ^ x>>4) & 0x00f000f0_00f000f0
		x ^= t ^ t<<4
		t = (x ^ x>>8) & 0x0000ff00_0000ff00
		return x ^ t ^ t<<8
	default:
		return x
	}
}

// rowsOfNumbers splits a panel of scales or biases, which are numbers of size bytes, into rows of
// width bytes.
func rowsOfNumbers(dst, src []byte, width, size int) {
	for lane := range PanelRows {
		to, from := dst[lane*width:][:width], src[size*lane:]
		for i := 0; i+size <= len(to); i += size {
			copyNumber(to[i:], from[i*PanelRows:], size)
		}
	}
}
