package gpu

import "github.com/moeflux/moeflux-actor/model/quant"

// Matrix is a weight matrix W[Rows, Cols] (out, in) on the device: y = W·x. Scales and Biases are
// zero unless the format has them.
type Matrix struct {
	Rows, Cols             int
	Format                 quant.Format
	Weight, Scales, Biases View
}

// With returns the matrix with those of the scales and biases that its format has.
func (m Matrix) With(scales, biases View) Matrix {
	if m.Format.ScaleBytes(m.Rows, m.Cols) > 0 {
		m.Scales = scales
	}
	if m.Format.BiasBytes(m.Rows, m.Cols) > 0 {
		m.Biases = biases
	}
	return m
}
