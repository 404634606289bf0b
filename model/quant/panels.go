package quant

import (
	"encoding/binary"
	"fmt"
)

// PanelRows is how many rows of a matrix lie together in layout Panels.
const PanelRows = 16

// ToPanels writes a part of a [rows, cols] matrix in layout Rows to dst in layout Panels, where it
// takes the same number of bytes. dst and src must not overlap. f.Layout is ignored. A matrix may
// be written in pieces of whole panels.
//
// A panel is 16 rows; panels follow each other. The codes of a panel are 32-bit words, one for each
// row in turn, so that 64 bytes hold the next 32/Bits inputs of all 16 rows. In a word of inputs i,
// i+1, …, byte j holds inputs i+j, i+4+j, i+8+j, …, least significant first: one shift and one mask
// give four neighbouring inputs of each row. Scales and biases are stored group by group, with one
// number for each row.
func (f Format) ToPanels(p Part, dst, src []byte, rows, cols int) {
	f.byPanel(p, dst, src, rows, cols, f.panelOfCodes, panelOfNumbers)
}

// byPanel calls codes or numbers for each panel, with the bytes of a row and of a number.
func (f Format) byPanel(p Part, dst, src []byte, rows, cols int, codes func(dst, src []byte, width int), numbers func(dst, src []byte, width, size int)) {
	if !f.Codes() || rows%PanelRows != 0 {
		panic(fmt.Sprintf("quant: panels of %d rows of %v", rows, f))
	}
	width := f.PartBytes(p, 1, cols)
	for at := 0; at < rows*width; at += PanelRows * width {
		d, s := dst[at:at+PanelRows*width], src[at:at+PanelRows*width]
		if p == Weight {
			codes(d, s, width)
		} else {
			numbers(d, s, width, f.numberBytes(p))
		}
	}
}

// tileBytes is how many bytes of each row are arranged at a time: a cache line, or 1 KiB of the
// panel.
const tileBytes = 64

// panelOfCodes arranges 16 rows of codes, width bytes each.
func (f Format) panelOfCodes(dst, src []byte, width int) {
	whole := width / tileBytes * tileBytes
	for at := 0; at < whole; at += tileBytes {
		tile := (*[tileBytes * PanelRows]byte)(dst[at*PanelRows:])
		for lane := range PanelRows {
			row := (*[tileBytes]byte)(src[lane*width+at:])
			switch f.Bits() {
			case 2:
				for i := 0; i < tileBytes; i += 8 {
					putPair(tile, i, lane, interleave2(binary.LittleEndian.Uint64(row[i:])))
				}
			case 4:
				for i := 0; i < tileBytes; i += 8 {
					putPair(tile, i, lane, interleave4(binary.LittleEndian.Uint64(row[i:])))
				}
			default: // bytes are in order already
				for i := 0; i < tileBytes; i += 8 {
					putPair(tile, i, lane, binary.LittleEndian.Uint64(row[i:]))
				}
			}
		}
	}
	for at := whole; at < width; at += 4 { // the rest, less than a cache line
		for lane := range PanelRows {
			x := uint64(binary.LittleEndian.Uint32(src[lane*width+at:]))
			switch f.Bits() {
			case 2:
				x = interleave2(x)
			case 4:
				x = interleave4(x)
			}
			binary.LittleEndian.PutUint32(dst[at*PanelRows+4*lane:], uint32(x))
		}
	}
}

// putPair writes two successive words of a row, from byte i of its tile on.
func putPair(tile *[tileBytes * PanelRows]byte, i, lane int, x uint64) {
	at := (i*PanelRows + 4*lane) & (tileBytes*PanelRows - 1)
	binary.LittleEndian.PutUint32(tile[at:at+4], uint32(x))
	at = (at + 4*PanelRows) & (tileBytes*PanelRows - 1)
	binary.LittleEndian.PutUint32(tile[at:at+4], uint32(x>>32))
}

// interleave4 rearranges the nibbles n0 to n7 of each of two words, n0 being lowest: bytes become
// n0 and n4, n1 and n5, and so on, the first of each in the lower half. It swaps the middle bytes,
// then the middle nibbles of each 16 bits.
func interleave4(x uint64) uint64 {
	t := (x ^ x>>8) & 0x0000ff00_0000ff00
	x ^= t ^ t<<8
	t = (x ^ x>>4) & 0x00f000f0_00f000f0
	return x ^ t ^ t<<4
}

// interleave2 transposes the 4 by 4 codes of each of two words: it swaps codes off the diagonal
// within blocks of 2 by 2, then the blocks off the diagonal.
func interleave2(x uint64) uint64 {
	t := (x ^ x>>6) & 0x00cc00cc_00cc00cc
	x ^= t ^ t<<6
	t = (x ^ x>>12) & 0x0000f0f0_0000f0f0
	return x ^ t ^ t<<12
}

// panelOfNumbers arranges the scales or biases of 16 rows, width bytes each, which are numbers of
// size bytes.
func panelOfNumbers(dst, src []byte, width, size int) {
	for lane := range PanelRows {
		from, to := src[lane*width:][:width], dst[size*lane:]
		for i := 0; i+size <= len(from); i += size {
			copyNumber(to[i*PanelRows:], from[i:], size)
		}
	}
}

// copyNumber copies a number of 1, 2 or 4 bytes.
func copyNumber(dst, src []byte, size int) {
	switch size {
	case 4:
		copy(dst[:4], src[:4])
	case 2:
		dst[0], dst[1] = src[0], src[1]
	default:
		dst[0] = src[0]
	}
}

// Shift returns the position of code i in its word, of 32 bits.
func (f Format) Shift(i int) int {
	if f.Layout == Panels {
		return i%4*8 + i/4*f.Bits()
	}
	return i * f.Bits()
}

// unpackPanel is Unpack for codes in layout Panels.
func (f Format) unpackPanel(dst []float32, weight, scales, biases []byte, row int) {
	cols, group, bits := len(dst), f.Group(), f.Bits()
	words, groups := cols*bits/32, cols/group
	panel, lane := row/PanelRows, row%PanelRows
	perWord := 32 / bits
	for g := range groups {
		x := f.numbers(scales, biases, (panel*groups+g)*PanelRows+lane)
		for i := g * group; i < (g+1)*group; i += perWord {
			word := binary.LittleEndian.Uint32(weight[4*((panel*words+i/perWord)*PanelRows+lane):])
			for j := range perWord {
				dst[i+j] = x.of(int(word >> f.Shift(j) & (1<<bits - 1)))
			}
		}
	}
	f.scaleRow(dst, biases, row)
}
