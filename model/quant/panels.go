package quant

import (
	"encoding/binary"
	"fmt"
)

// PanelRows is how many rows of a matrix lie together in layout Panels.
const PanelRows = 16

// Codes is the memory of an affine matrix.
type Codes struct {
	Weight, Scales, Biases []byte
}

// ToPanels writes a [rows, cols] matrix in layout Rows to dst in layout Panels. Codes, scales and
// biases each take the same number of bytes as before. Fields of dst that are nil are left out. dst
// and src must not overlap. f.Layout is ignored. A matrix may be written in parts of whole panels.
//
// A panel is 16 rows; panels follow each other. The codes of a panel are 32-bit words, one for each
// row in turn, so that 64 bytes hold the next 32/Bits inputs of all 16 rows. In a word of inputs i,
// i+1, …, byte j holds inputs i+j, i+4+j, i+8+j, …, least significant first: one shift and one mask
// give four neighbouring inputs of each row. Scales and biases are stored group by group, with one
// number for each row.
func (f Format) ToPanels(dst, src Codes, rows, cols int) {
	if f.Kind != Affine || rows%PanelRows != 0 {
		panic(fmt.Sprintf("quant: panels of %d rows of %v", rows, f))
	}
	width, groups := f.WeightBytes(1, cols), cols/f.Group
	for first := 0; first < rows; first += PanelRows {
		if dst.Weight != nil {
			at, n := first*width, PanelRows*width
			f.panelOfCodes(dst.Weight[at:at+n], src.Weight[at:at+n], width)
		}
		at, n := first*groups*2, PanelRows*groups*2
		if dst.Scales != nil {
			panelOfPairs(dst.Scales[at:at+n], src.Scales[at:at+n], groups)
		}
		if dst.Biases != nil {
			panelOfPairs(dst.Biases[at:at+n], src.Biases[at:at+n], groups)
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
			switch f.Bits {
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
			switch f.Bits {
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

// panelOfPairs arranges the 16-bit scales or biases of 16 rows.
func panelOfPairs(dst, src []byte, groups int) {
	for lane := range PanelRows {
		from, to := src[lane*groups*2:][:groups*2], dst[2*lane:]
		for i := 0; i+2 <= len(from); i += 2 {
			binary.LittleEndian.PutUint16(to[i*PanelRows:], binary.LittleEndian.Uint16(from[i:]))
		}
	}
}

// panelShift returns the position of code i in a word of a panel.
func (f Format) panelShift(i int) int { return i%4*8 + i/4*f.Bits }

// unpackPanel is Unpack for layout Panels.
func (f Format) unpackPanel(dst []float32, weight, scales, biases []byte, row int) {
	cols := len(dst)
	words, groups := cols*f.Bits/32, cols/f.Group
	panel, lane := row/PanelRows, row%PanelRows
	perWord := 32 / f.Bits
	for g := range groups {
		at := 2 * ((panel*groups+g)*PanelRows + lane)
		scale := BF16ToF32(binary.LittleEndian.Uint16(scales[at:]))
		bias := BF16ToF32(binary.LittleEndian.Uint16(biases[at:]))
		for i := g * f.Group; i < (g+1)*f.Group; i += perWord {
			word := binary.LittleEndian.Uint32(weight[4*((panel*words+i/perWord)*PanelRows+lane):])
			for j := range perWord {
				code := word >> f.panelShift(j) & (1<<f.Bits - 1)
				dst[i+j] = float32(float32(code)*scale) + bias
			}
		}
	}
}
