package quant

import (
	"encoding/binary"
	"fmt"
)

// PanelRows is how many rows of a matrix lie together in layout Panels.
const PanelRows = 16

// ToPanels writes a [rows, cols] matrix of layout Rows to dst in layout Panels: codes, scales and biases, each as many bytes as before. The
// three of dst do not overlap those of src. f.Layout is not looked at. A matrix may be written in parts of whole panels.
//
// A panel is 16 rows, one panel after the other. Its codes are 32-bit words, one for each row in turn, so that 64 bytes hold the next
// 32/Bits inputs of all 16 rows. In the word of inputs i, i+1, … byte j holds inputs i+j, i+4+j, i+8+j, …, least significant
// first: one shift and one mask give four neighbouring inputs of each row. Scales and biases lie group after group, in a group one for
// each row.
func (f Format) ToPanels(dst, src Codes, rows, cols int) {
	if f.Kind != Affine || rows%PanelRows != 0 {
		panic(fmt.Sprintf("quant: panels of %d rows of %v", rows, f))
	}
	words, groups := cols*f.Bits/32, cols/f.Group
	for r := range rows {
		panel, lane := r/PanelRows, r%PanelRows
		for w := range words {
			word := binary.LittleEndian.Uint32(src.Weight[4*(r*words+w):])
			binary.LittleEndian.PutUint32(dst.Weight[4*((panel*words+w)*PanelRows+lane):], f.interleave(word))
		}
		for g := range groups {
			from, to := 2*(r*groups+g), 2*((panel*groups+g)*PanelRows+lane)
			copy(dst.Scales[to:to+2], src.Scales[from:])
			copy(dst.Biases[to:to+2], src.Biases[from:])
		}
	}
}

// Codes is the memory of an affine matrix.
type Codes struct {
	Weight, Scales, Biases []byte
}

// interleave puts the codes of a word into a panel's order.
func (f Format) interleave(word uint32) uint32 {
	var out uint32
	for i := range 32 / f.Bits {
		code := word >> (i * f.Bits) & (1<<f.Bits - 1)
		out |= code << f.panelShift(i)
	}
	return out
}

// panelShift returns the first bit of a word's code i in a panel.
func (f Format) panelShift(i int) int { return i%4*8 + i/4*f.Bits }

// unpackPanel is Unpack of layout Panels.
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
