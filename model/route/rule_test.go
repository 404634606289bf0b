package route

import (
	"math"
	"slices"
	"testing"
)

// TestNoAuxTC is the golden vector of architectures.md, section 11: it tells biased choice, unbiased weights and the limit of
// groups apart.
func TestNoAuxTC(t *testing.T) {
	r := Rule{Sigmoid: true, NormTopK: true, Scale: 2.5, NGroup: 3, TopKGroup: 2}
	bias := []float32{0.2, 0.05, -0.15, 0.6, -0.1, 0, 0.3, -0.4, 0.1, -0.3, 0.25, 0}
	var c Chooser
	scores := []float32{0.5, -1, 2.2, -0.4, 1.7, 0.3, -2.5, 3.1, 1.1, -0.2, 0.9, -1.6}
	picks, weights := make([]int32, 3), make([]float32, 3)
	c.Choose(&r, bias, scores, picks, weights)
	want := map[int32]float64{3: 0.538668, 10: 0.954283, 8: 1.007049}
	for i, p := range picks {
		if w, ok := want[p]; !ok || math.Abs(float64(weights[i])-w) > 1e-6 {
			t.Errorf("pick %d weighs %v, want one of %v", p, weights[i], want)
		}
	}
	if !slices.IsSortedFunc(weights, func(a, b float32) int { return int(math.Copysign(1, float64(b-a))) }) {
		t.Errorf("weights %v are not heaviest first", weights)
	}
	r.NGroup, bias = 1, nil
	c.Choose(&r, bias, scores, picks, weights)
	if !slices.Equal(picks, []int32{7, 2, 4}) {
		t.Errorf("without bias and groups: %v, want 7, 2, 4", picks)
	}
}
