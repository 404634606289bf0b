package route

import (
	"math"
	"slices"
	"testing"
)

// TestNoAuxTC is the golden vector of architectures.md, section 11: it tells biased choice,
// unbiased weights and the limit of groups apart.
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

// TestSoftmax takes scores that are logarithms of small numbers, so that weights can be worked out
// by hand. Float32 logarithms are off in the eighth digit, and so may weights be.
func TestSoftmax(t *testing.T) {
	ln1234 := []float32{0.6931472, 1.3862944, 0, 1.0986123}
	for _, c := range []struct {
		name    string
		rule    Rule
		scores  []float32
		picks   []int32
		weights []float64
	}{
		{"of all", Rule{}, ln1234, []int32{1, 3}, []float64{0.4, 0.3}},
		{"of the picked", Rule{NormTopK: true}, ln1234, []int32{1, 3}, []float64{4.0 / 7, 3.0 / 7}},
		{"scaled", Rule{NormTopK: true, Scale: 3.5}, ln1234, []int32{1, 3}, []float64{2, 1.5}},
		{"equal", Rule{NormTopK: true}, []float32{5, 5, 5, 5}, []int32{0, 1}, []float64{0.5, 0.5}},
		{"equal behind", Rule{NormTopK: true}, []float32{1, 2, 1, 2}, []int32{1, 3}, []float64{0.5, 0.5}},
		{"large", Rule{}, []float32{3e38, -3e38, 3e38, 0}, []int32{0, 2}, []float64{0.5, 0.5}},
		{"small", Rule{}, []float32{-3e38, -3e38, -3e38, -3e38}, []int32{0, 1}, []float64{0.25, 0.25}},
		{"one", Rule{NormTopK: true}, []float32{0, 1, 0, 0}, []int32{1}, []float64{1}},
	} {
		picks, weights := make([]int32, len(c.picks)), make([]float32, len(c.picks))
		new(Chooser).Choose(&c.rule, nil, c.scores, picks, weights)
		for i, w := range c.weights {
			if !slices.Equal(picks, c.picks) || math.Abs(float64(weights[i])-w) > 2e-7*w {
				t.Errorf("%s: picks %v with weights %v, want %v with %v", c.name, picks, weights, c.picks, c.weights)
				break
			}
		}
	}
	for i, v := range [][]float32{{float32(math.NaN()), 1}, {0, float32(math.Inf(1))}, {0, 0, float32(math.Inf(-1)), float32(math.NaN())}} {
		if got := NotFinite(v); got != i {
			t.Errorf("of %v the first that is no finite number is %d, want %d", v, got, i)
		}
	}
}
