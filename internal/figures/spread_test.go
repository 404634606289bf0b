package figures

import "testing"

func TestSpreadOf(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want Spread
	}{
		{[]float64{3}, Spread{3, 3, 3}},
		{[]float64{4, 1}, Spread{2.5, 1, 4}},
		{[]float64{9, 1, 2}, Spread{2, 1, 9}},
		{[]float64{8, 1, 2, 4}, Spread{3, 1, 8}},
	} {
		if got := SpreadOf(c.in); got != c.want {
			t.Errorf("spread of %v: got %v, want %v", c.in, got, c.want)
		}
	}
}
