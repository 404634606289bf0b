package host

import (
	"encoding/binary"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// matrix is a gpu.Matrix in memory.
type matrix struct {
	rows, cols int
	format     quant.Format
	rowBytes   int
	weight     []byte
	scales     []byte // bf16, little-endian
	biases     []byte
}

func matrixOf(m *gpu.Matrix) matrix {
	w := matrix{rows: m.Rows, cols: m.Cols, format: m.Format, rowBytes: m.Format.WeightBytes(1, m.Cols)}
	w.weight = bytesAt(m.Weight, m.Rows*w.rowBytes)
	if m.Format.Kind == quant.Affine {
		n := m.Format.ScaleBytes(m.Rows, m.Cols)
		w.scales = bytesAt(m.Scales, n)
		w.biases = bytesAt(m.Biases, n)
	}
	return w
}

func (m *matrix) affine() bool { return m.format.Kind == quant.Affine }

// row returns the bytes of row o.
func (m *matrix) row(o int) []byte { return m.weight[o*m.rowBytes : (o+1)*m.rowBytes] }

// groups returns the scales and biases of row o, both nil if the matrix has none.
func (m *matrix) groups(o int) (scales, biases []byte) {
	if !m.affine() {
		return nil, nil
	}
	n := m.cols / m.format.Group * 2
	return m.scales[o*n : (o+1)*n], m.biases[o*n : (o+1)*n]
}

// block returns how many inputs are summed together.
func (m *matrix) block() int {
	if m.affine() {
		return m.format.Group
	}
	return blockInputs
}

// bf16 returns element i of a list of bf16.
func bf16(list []byte, i int) float32 {
	return math.Float32frombits(uint32(binary.LittleEndian.Uint16(list[2*i:])) << 16)
}

// Tables of the codes in a byte, as float32: reading them is quicker than shifting, masking and converting.
var (
	codes8 = makeCodes8()
	codes4 = makeCodes4()
	codes2 = makeCodes2()
)

func makeCodes8() (t [256]float32) {
	for b := range t {
		t[b] = float32(b)
	}
	return t
}

func makeCodes4() (t [256][2]float32) {
	for b := range t {
		t[b] = [2]float32{float32(b & 15), float32(b >> 4)}
	}
	return t
}

func makeCodes2() (t [256][4]float32) {
	for b := range t {
		t[b] = [4]float32{float32(b & 3), float32(b >> 2 & 3), float32(b >> 4 & 3), float32(b >> 6)}
	}
	return t
}

// unpack writes a row's codes, or its elements if it has none, to dst [cols].
func unpack(dst []float32, row []byte, f quant.Format) {
	switch {
	case f.Kind == quant.F32:
		copy(dst, gpu.Floats(row, len(dst)))
	case f.Kind == quant.BF16:
		for i := range dst {
			dst[i] = bf16(row, i)
		}
	case f.Bits == 8:
		for i, b := range row {
			dst[i] = codes8[b]
		}
	case f.Bits == 4:
		for i, b := range row {
			*(*[2]float32)(dst[2*i:]) = codes4[b]
		}
	default:
		for i, b := range row {
			*(*[4]float32)(dst[4*i:]) = codes2[b]
		}
	}
}
