package convert

import (
	"encoding/binary"
	"fmt"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// encoding is how a checkpoint stores the numbers of a matrix.
type encoding uint8

const (
	plain encoding = iota // BF16, F16 or F32
	coded                 // codes, scales and biases as packs have them: MLX
	// 4-bit codes with a scale for each group, whose bias is -8 scales: compressed-tensors
	centred
	recoded // codes that a recipe takes apart
	packed  // blocks of a quant.Block: GGUF
	// BF16, F16 or F32 as plain, but each matrix of a stack has its inputs as the first axis
	inputsFirst
)

// fp8Tile is the side of the tiles in which 8-bit floats share a scale.
const fp8Tile = 128

// found is a matrix found in the source, and what it becomes. A stack of matrices counts as one
// matrix with the rows of all, a vector as a matrix with one row.
type found struct {
	enc                    encoding
	rows, cols             int
	weight, scales, biases safetensors.Tensor
	codes                  quant.Format // of coded and centred in the source, of recoded in packs
	recipe                 *recipe      // of recoded
	format                 quant.Format // in the target
	block                  *quant.Block // in the source, of packed
	perStack               int          // rows of one matrix, of inputsFirst
}

// fill widens the elements at, at+1, … to dst.
func (m *found) fill(dst []float32, at int) error {
	switch m.enc {
	case plain:
		return m.weight.Floats(dst, at)
	case recoded:
		return m.fillRecoded(dst, at)
	case packed:
		m.fillBlocks(dst, at)
		return nil
	case inputsFirst:
		return m.fillColumns(dst, at)
	default:
		return m.fillCodes(dst, at)
	}
}

// fillCodes is fill for codes, group by group.
func (m *found) fillCodes(dst []float32, at int) error {
	f, group := m.codes, m.codes.Group()
	numbers := make([]float32, group)
	for i := 0; i < len(dst); {
		g, off := (at+i)/group, (at+i)%group
		m.unpackGroup(numbers, f, g)
		i += copy(dst[i:], numbers[off:])
	}
	return nil
}

// unpackGroup widens group g.
func (m *found) unpackGroup(dst []float32, f quant.Format, g int) {
	if m.enc != centred {
		f.Unpack(dst, len(dst), m.weight.Data, m.scales.Data, m.biases.Data, g)
		return
	}
	scale := m.scales.Data[f.ScaleBytes(1, g*len(dst)):]
	bias := binary.LittleEndian.AppendUint16(nil, minusEightOf(scale))
	f.Unpack(dst, len(dst), m.weight.Data[f.WeightBytes(1, g*len(dst)):], scale, bias, 0)
}

// fillColumns is fill for matrices whose rows lie as columns. Neighbouring rows share cache lines.
func (m *found) fillColumns(dst []float32, at int) error {
	t := m.weight
	size := len(t.Data) / t.Elements()
	gathered := make([]byte, 0, len(dst)*size)
	for i := at; i < at+len(dst); i++ {
		row, col := i/m.cols, i%m.cols
		matrix, r := row/m.perStack, row%m.perStack
		gathered = append(gathered, t.Data[((matrix*m.cols+col)*m.perStack+r)*size:][:size]...)
	}
	t.Data, t.Shape = gathered, []int{len(dst)}
	return t.Floats(dst, 0)
}

// fillBlocks is fill for blocks, of which the first and the last may be needed in part.
func (m *found) fillBlocks(dst []float32, at int) {
	b := m.block
	for len(dst) > 0 {
		n, off := len(dst)/b.Len*b.Len, at%b.Len
		if off == 0 && n > 0 {
			b.Unpack(dst[:n], m.weight.Data[b.Bytes(1, at):][:b.Bytes(1, n)])
		} else {
			one := make([]float32, b.Len)
			b.Unpack(one, m.weight.Data[b.Bytes(1, at-off):][:b.Size])
			n = copy(dst, one[off:])
		}
		dst, at = dst[n:], at+n
	}
}

// rowRange is n rows of a matrix from first on, with a step of which only every step-th.
type rowRange struct{ first, n, step int }

// part calls fn for each run of the elements first to first+n of the range that is contiguous in
// the matrix, whose rows have width elements: the run begins at element at of the matrix, and done
// elements after first.
func (r rowRange) part(width, first, n int, fn func(at, done, n int) error) error {
	if r.step < 2 {
		return fn(r.first*width+first, 0, n)
	}
	for done := 0; done < n; {
		row, col := (first+done)/width, (first+done)%width
		k := min(n-done, width-col)
		if err := fn((r.first+row*r.step)*width+col, done, k); err != nil {
			return err
		}
		done += k
	}
	return nil
}

// numbers is ranges of rows of a matrix, one after the other, that become one matrix of the target.
type numbers struct {
	m      *found
	rows   []rowRange
	pieces *pieces // nil: the columns stay in their order
}

// pieces is an order of columns: those of piece i of the target are those of piece from[i] of the
// source. All pieces have width columns.
type pieces struct {
	width int
	from  []int
}

// all returns every row.
func (m *found) all() *numbers { return &numbers{m: m, rows: []rowRange{{n: m.rows}}} }

// rowCount returns how many rows there are.
func (x *numbers) rowCount() int {
	n := 0
	for _, r := range x.rows {
		n += r.n
	}
	return n
}

// count returns how many elements there are.
func (x *numbers) count() int { return x.rowCount() * x.m.cols }

// split calls fn for each run of the elements first to first+n that is contiguous in the matrix.
// The run begins at element at of the matrix, and off elements after first.
func (x *numbers) split(first, n int, fn func(at, off, n int) error) error {
	if x.pieces == nil {
		return x.runs(first, n, fn)
	}
	p, cols := x.pieces, x.m.cols
	return x.runs(first, n, func(at, off, n int) error {
		for n > 0 {
			row, col := at/cols, at%cols
			k := min(n, p.width-col%p.width)
			if err := fn(row*cols+p.from[col/p.width]*p.width+col%p.width, off, k); err != nil {
				return err
			}
			at, off, n = at+k, off+k, n-k
		}
		return nil
	})
}

// runs is split as far as rows are concerned.
func (x *numbers) runs(first, n int, fn func(at, off, n int) error) error {
	off := 0
	for _, r := range x.rows {
		size := r.n * x.m.cols
		if first < size && n > 0 {
			k := min(n, size-first)
			if err := r.part(x.m.cols, first, k, func(at, done, n int) error { return fn(at, off+done, n) }); err != nil {
				return err
			}
			off, n, first = off+k, n-k, first+k
		}
		first -= size
	}
	if n > 0 {
		return fmt.Errorf("convert: tensor %q: read %d elements past its end", x.m.weight.Name, n)
	}
	return nil
}

// fill widens the elements first, first+1, … to dst.
func (x *numbers) fill(dst []float32, first int) error {
	return x.split(first, len(dst), func(at, off, n int) error { return x.m.fill(dst[off:off+n], at) })
}

// element returns where in the matrix the i-th element is.
func (x *numbers) element(i int) (at int, err error) {
	err = x.split(i, 1, func(a, _, _ int) error {
		at = a
		return nil
	})
	return at, err
}

// array returns an array of the matrix.
func (m *found) array(p quant.Part) safetensors.Tensor {
	return [quant.NumParts]safetensors.Tensor{m.weight, m.scales, m.biases}[p]
}

// bytes returns the bytes of an array of a matrix that packs have as it is, range by range. If
// columns do not stay, they are in blocks, and whole blocks move.
func (x *numbers) bytes(a quant.Part) [][]byte {
	t := x.m.array(a)
	width := len(t.Data) / x.m.rows
	out := make([][]byte, 0, len(x.rows))
	for _, r := range x.rows {
		_ = r.part(width, 0, r.n*width, func(at, _, n int) error { // fn does not fail
			out = append(out, t.Data[at:at+n])
			return nil
		})
	}
	if x.pieces == nil {
		return out
	}
	var moved [][]byte
	each := x.m.format.WeightBytes(1, x.pieces.width)
	for _, rows := range out {
		for ; len(rows) > 0; rows = rows[width:] {
			for _, from := range x.pieces.from {
				moved = append(moved, rows[from*each:(from+1)*each])
			}
		}
	}
	return moved
}

// drop calls fn with the bytes of the source that the elements first to first+n were made from.
func (x *numbers) drop(first, n int, fn func([]byte)) {
	total := x.m.rows * x.m.cols
	// What a recipe takes scales from may serve several rows. It is little, and stays.
	arrays := [][]byte{x.m.weight.Data}
	switch {
	case x.m.enc == inputsFirst || x.m.enc == recoded && x.m.recipe.scattered:
		return // every row has its numbers all over its matrix
	case x.m.enc == recoded:
	default:
		arrays = append(arrays, x.m.scales.Data, x.m.biases.Data)
	}
	_ = x.runs(first, n, func(at, _, n int) error { // fn does not fail
		for _, a := range arrays {
			if len(a) > 0 {
				fn(a[at*len(a)/total : (at+n)*len(a)/total])
			}
		}
		return nil
	})
}
