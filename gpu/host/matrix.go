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
	scales     []byte // empty if the format has none, as biases
	biases     []byte
}

func matrixOf(m *gpu.Matrix) matrix {
	w := matrix{rows: m.Rows, cols: m.Cols, format: m.Format, rowBytes: m.Format.WeightBytes(1, m.Cols)}
	w.weight = bytesAt(m.Weight, m.Rows*w.rowBytes)
	if n := m.Format.ScaleBytes(m.Rows, m.Cols); n > 0 {
		w.scales = bytesAt(m.Scales, n)
	}
	if n := m.Format.BiasBytes(m.Rows, m.Cols); n > 0 {
		w.biases = bytesAt(m.Biases, n)
	}
	return w
}

// row returns the bytes of row o of a matrix that is not in panels.
func (m *matrix) row(o int) []byte { return m.weight[o*m.rowBytes : (o+1)*m.rowBytes] }

// bf16 returns element i of a list of bf16.
func bf16(list []byte, i int) float32 {
	return math.Float32frombits(uint32(binary.LittleEndian.Uint16(list[2*i:])) << 16)
}
