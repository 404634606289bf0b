package convert

import (
	"fmt"
	"io"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// recipe is how the codes of a checkpoint become those of a pack where that is more than a copy:
// their order, their width or what groups share is stored in another way. No number changes.
// Functions may be called from many goroutines; i counts groups of the pack in the order of rows.
type recipe struct {
	needs []safetensors.Tensor // what the functions read
	// codes writes the codes of elements at, at+1, … to dst, one byte each.
	codes func(dst []byte, at int) error
	// scale and bias write the number of group i as the pack has it, factor that of row i. Those
	// that the format has not are nil.
	scale, bias, factor func(dst []byte, i int) error
	scattered           bool // a row's codes lie all over the source
	// rounds says why packs cannot have the numbers, "" if they can. Then value returns what
	// element at stands for, and there are no other functions.
	rounds string
	value  func(at int) (float32, error)
}

// fillRecoded is fill for a recipe.
func (m *found) fillRecoded(dst []float32, at int) error {
	r := m.recipe
	if r.value != nil {
		for i := range dst {
			v, err := r.value(at + i)
			if err != nil {
				return err
			}
			dst[i] = v
		}
		return nil
	}
	codes, c := make([]byte, len(dst)), m.codes.Coding()
	if err := r.codes(codes, at); err != nil {
		return err
	}
	var scale, bias, factor [4]byte
	for i, last := 0, -1; i < len(dst); i++ {
		if g := (at + i) / m.codes.Group(); g != last {
			if err := m.numbersOf(g, scale[:], bias[:], factor[:]); err != nil {
				return err
			}
			last = g
		}
		dst[i] = (float32(c.Value(int(codes[i]))*c.Scale(scale[:], 0)) + c.Bias(bias[:], 0)) * c.RowFactor(factor[:], 0)
	}
	return nil
}

// numbersOf writes what group g has in common.
func (m *found) numbersOf(g int, scale, bias, factor []byte) error {
	r := m.recipe
	err := r.scale(scale, g)
	if err == nil && r.bias != nil {
		err = r.bias(bias, g)
	}
	if err == nil && r.factor != nil {
		err = r.factor(factor, g*m.codes.Group()/m.cols)
	}
	return err
}

// recodeNumbers writes the scales, biases or factors of a block.
func (e *emitter) recodeNumbers(w io.Writer, b block) error {
	m := b.src.m
	per, write := b.format.Group(), m.recipe.scale // elements of a number
	if b.array == quant.Biases {
		if write = m.recipe.bias; m.recipe.factor != nil {
			per, write = m.cols, m.recipe.factor
		}
	}
	size := int(b.bytes) / (b.src.count() / per)
	out := e.out[:0]
	flush := func() error {
		_, err := w.Write(out)
		out = e.out[:0]
		return err
	}
	err := b.src.runs(0, b.src.count(), func(at, _, n int) error { // runs are whole rows
		for i := at / per; i < (at+n)/per; i++ {
			out = out[:len(out)+size]
			if err := write(out[len(out)-size:], i); err != nil {
				return err
			}
			if len(out)+size > cap(out) {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// recodeCodes packs the codes of n elements from first on in words of the block's format.
func recodeCodes(b block, dst []byte, first, n int) error {
	codes := make([]byte, n)
	err := b.src.split(first, n, func(at, off, n int) error { return b.src.m.recipe.codes(codes[off:off+n], at) })
	if err != nil {
		return err
	}
	if b.format.Bits() == 8 {
		copy(dst, codes)
		return checkFloat8(b, codes, first)
	}
	for i := range dst[:n/2] {
		dst[i] = codes[2*i]&15 | codes[2*i+1]<<4
	}
	return nil
}

// number writes number i of a tensor as bf16 if it is that, else as float32.
func number(t safetensors.Tensor) func(dst []byte, i int) error {
	if t.DType == safetensors.BF16 {
		return func(dst []byte, i int) error {
			copy(dst, t.Data[2*i:2*i+2])
			return nil
		}
	}
	return func(dst []byte, i int) error {
		v, err := floatAt(t, i)
		putF32(dst, []float32{v})
		return err
	}
}

// floatAt returns number i of a tensor, which must be finite.
func floatAt(t safetensors.Tensor, i int) (float32, error) {
	var v [1]float32
	if err := t.Floats(v[:], i); err != nil {
		return 0, err
	}
	if d := v[0] - v[0]; d != 0 {
		return 0, &SourceError{Tensor: t.Name, Got: fmt.Sprintf("scale %v", v[0]), Want: "finite numbers"}
	}
	return v[0], nil
}

// bitsAt writes codes of a number of bits, the first being element at of a list in which they lie
// one after the other, least significant bit first.
func bitsAt(dst, list []byte, bits, at int) {
	mask := uint16(1)<<bits - 1
	for i := range dst {
		bit := (at + i) * bits
		word := uint16(list[bit/8])
		if bit%8+bits > 8 {
			word |= uint16(list[bit/8+1]) << 8
		}
		dst[i] = byte(word >> (bit % 8) & mask)
	}
}

// groupIn returns the size of the groups in which a pack stores numbers that groups of size inputs
// share: the largest that divides them. 0 means that there is none.
func groupIn(size int, sizes ...int) int {
	for _, g := range sizes {
		if size > 0 && size%g == 0 {
			return g
		}
	}
	return 0
}

// checkFloat8 reports the first code of 8-bit floats that is no number; they begin at element
// first.
func checkFloat8(b block, codes []byte, first int) error {
	i := b.format.NoCode(codes)
	if i < 0 {
		return nil
	}
	at, _ := b.src.element(first + i)
	return &SourceError{Tensor: b.src.m.weight.Name, Got: fmt.Sprintf("%#x in element %d, which is not a number", codes[i], at)}
}
