package eval

import (
	"math"
	"testing"
)

func TestNLL(t *testing.T) {
	for _, c := range []struct {
		name   string
		logits []float32
		id     int32
		want   float64
	}{
		{"uniform", make([]float32, 8), 3, math.Log(8)},
		{"two", []float32{0, float32(math.Log(3))}, 1, math.Log(4.0 / 3)},
		{"large logits do not overflow", []float32{1e4, 1e4 - 1}, 1, 1 + math.Log1p(math.Exp(-1))},
		{"very unlikely", []float32{0, -1000}, 1, 1000},
		{"ruled out elsewhere", []float32{1, float32(math.Inf(-1))}, 0, 0},
	} {
		// The logits are float32: the relative rounding of log(3) is 6e-8.
		if got := nll(c.logits, c.id); math.Abs(got-c.want) > 1e-7 {
			t.Errorf("%s: nll(%v, %d) = %.12f, want %.12f", c.name, c.logits, c.id, got, c.want)
		}
	}
	if got := nll([]float32{1, float32(math.NaN()), 2}, 0); !math.IsNaN(got) {
		t.Errorf("nll with a NaN = %v, want NaN", got)
	}
}
