package convert

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// takeBlocks takes a matrix of every expert as gpt-oss stores them in MXFP4: name_blocks, U8
// [experts, rows, groups, 16], whose bytes are codes in the order of inputs, and name_scales, U8
// [experts, rows, groups]. Packs have the same bytes.
func takeBlocks(src *source, name string, experts, rows, cols int) (*found, error) {
	f := quant.MXFP4
	if err := f.Validate(cols); err != nil {
		return nil, &SourceError{Tensor: name + "_blocks", Got: err.Error()}
	}
	groups := cols / f.Group()
	m := &found{enc: coded, rows: experts * rows, cols: cols, codes: f}
	var err error
	if m.weight, err = takeTyped(src, name+"_blocks", safetensors.U8, []int{experts, rows, groups, f.Group() / 2}); err != nil {
		return nil, err
	}
	m.scales, err = takeTyped(src, name+"_scales", safetensors.U8, []int{experts, rows, groups})
	return m, err
}

// blocks is takeBlocks for all experts of the layer. It returns nil after noting an error.
func (x *expertFinder) blocks(name string, rows, cols int) *found {
	m, err := takeBlocks(x.src, name, x.n, rows, cols)
	if err != nil {
		x.note(err)
		return nil
	}
	m.choose(x.wish)
	return m
}

// turns returns the projection that has every second of each expert's 2n rows of m, from first on:
// gpt-oss has gate and up in turns.
func (x *expertFinder) turns(m *found, n, first int) projection {
	if m == nil {
		return projection{}
	}
	return projection{format: m.format, expert: func(e int) *numbers {
		return &numbers{m: m, rows: []rowRange{{first: 2*n*e + first, n: n, step: 2}}}
	}}
}

// checkScales reports the first scale of a block that is no number.
func checkScales(b block, scales []byte) error {
	if i := b.format.NoNumber(scales); i >= 0 {
		return noPower(b.src.m.scales, scales[i])
	}
	return nil
}

// noPower reports a scale that is no power of two.
func noPower(t safetensors.Tensor, scale byte) error {
	return &SourceError{Tensor: t.Name, Got: fmt.Sprintf("scale %#x, which is not a number", scale), Want: "0 to 0xfe"}
}
