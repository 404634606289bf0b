package refmodel

import (
	"math"
	"math/rand/v2"
)

// matrix is [rows, cols], row-major.
type matrix struct {
	rows, cols int
	w          []float64
}

func (m *matrix) row(i int) []float64 { return m.w[i*m.cols : (i+1)*m.cols] }

// slice returns rows lo to hi-1.
func (m *matrix) slice(lo, hi int) *matrix {
	return &matrix{rows: hi - lo, cols: m.cols, w: m.w[lo*m.cols : hi*m.cols]}
}

// noise imitates the rounding of a less exact computation. It adds to every product of a row and a
// vector a random number of standard deviation size · sqrt(Σ (w·x)²), which is how the rounding
// errors of the terms add up.
type noise struct {
	size float64
	rng  *rand.Rand
}

// mul returns m · x.
func (s *State) mul(m *matrix, x []float64) []float64 {
	out := make([]float64, m.rows)
	for i := range out {
		row := m.row(i)
		out[i] = dot(row, x)
		if s.noise == nil {
			continue
		}
		squares := 0.0
		for j, w := range row {
			squares += w * x[j] * w * x[j]
		}
		out[i] += s.noise.size * math.Sqrt(squares) * s.noise.rng.NormFloat64()
	}
	return out
}
