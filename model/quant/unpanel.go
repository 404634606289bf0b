package quant

import (
	"encoding/binary"
	"fmt"
)

// ToRows writes a [rows, cols] matrix in layout Panels to dst in layout Rows. It is the inverse of
// ToPanels and treats parts and memory in the same way.
func (f Format) ToRows(dst, src Codes, rows, cols int) {
	if f.Kind != Affine || rows%PanelRows != 0 {
		panic(fmt.Sprintf("quant: panels of %d rows of %v", rows, f))
	}
	width, groups := f.WeightBytes(1, cols), cols/f.Group
	for first := 0; first < rows; first += PanelRows {
		if dst.Weight != nil {
			at, n := first*width, PanelRows*width
			f.rowsOfCodes(dst.Weight[at:at+n], src.Weight[at:at+n], width)
		}
		at, n := first*groups*2, PanelRows*groups*2
		if dst.Scales != nil {
			rowsOfPairs(dst.Scales[at:at+n], src.Scales[at:at+n], groups)
		}
		if dst.Biases != nil {
			rowsOfPairs(dst.Biases[at:at+n], src.Biases[at:at+n], groups)
		}
	}
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
	switch f.Bits {
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

// rowsOfPairs splits a panel of 16-bit scales or biases into rows.
func rowsOfPairs(dst, src []byte, groups int) {
	for lane := range PanelRows {
		to, from := dst[lane*groups*2:][:groups*2], src[2*lane:]
		for i := 0; i+2 <= len(to); i += 2 {
			binary.LittleEndian.PutUint16(to[i:], binary.LittleEndian.Uint16(from[i*PanelRows:]))
		}
	}
}
