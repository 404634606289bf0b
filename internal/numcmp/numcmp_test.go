package numcmp

import (
	"errors"
	"math"
	"strings"
	"testing"
)

var (
	nan = float32(math.NaN())
	inf = float32(math.Inf(1))
)

func next(f float32, n int) float32 {
	for range n {
		f = math.Nextafter32(f, inf)
	}
	return f
}

func TestULP(t *testing.T) {
	negativeZero := float32(math.Copysign(0, -1))
	tests := []struct {
		a, b float32
		want int64
	}{
		{1, 1, 0},
		{1, next(1, 1), 1},
		{next(1, 5), 1, 5},
		{0, negativeZero, 0},
		{0, math.SmallestNonzeroFloat32, 1},
		{-math.SmallestNonzeroFloat32, math.SmallestNonzeroFloat32, 2},
		{-1, next(-1, 3), 3},
		{math.MaxFloat32, inf, 1},
		{nan, nan, 0},
		{nan, 1, math.MaxInt64},
		{1, nan, math.MaxInt64},
	}
	for _, tt := range tests {
		if got := ULP(tt.a, tt.b); got != tt.want {
			t.Errorf("ULP(%v, %v) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestRules(t *testing.T) {
	f := func(v ...float32) []float32 { return v }
	negativeZero := float32(math.Copysign(0, -1))
	tests := []struct {
		name string
		err  error
		ok   bool
	}{
		{"equal", Equal(f(1, nan, inf), f(1, nan, inf)), true},
		{"equal: one step", Equal(f(next(1, 1)), f(1)), false},
		{"equal: minus zero", Equal(f(negativeZero), f(0)), false},
		{"equal: NaN for a number", Equal(f(nan), f(1)), false},
		{"equal: number for NaN", Equal(f(1), f(nan)), false},
		{"within", Within(f(next(1, 3), 2), f(1, 2), 3), true},
		{"within: one more", Within(f(next(1, 4), 2), f(1, 2), 3), false},
		{"within: NaN", Within(f(nan), f(1), math.MaxInt32), false},
		{"near absolute", Near(f(1.5), []float64{1}, 0.5, 0), true},
		{"near absolute: more", Near(f(1.51), []float64{1}, 0.5, 0), false},
		{"near relative", Near(f(-110), []float64{-100}, 0, 0.1), true},
		{"near relative: more", Near(f(-111), []float64{-100}, 0, 0.1), false},
		{"near: NaN", Near(f(nan), []float64{1}, 1e9, 1e9), false},
		{"near: NaN wanted", Near(f(1), []float64{math.NaN()}, 1e9, 1e9), false},
		{"near: infinity", Near(f(inf), []float64{1}, 1e9, 1e9), false},
		{"near: infinity wanted", Near(f(1), []float64{math.Inf(1)}, 1, 1), false},
		{"near: other infinity", Near(f(inf), []float64{math.Inf(-1)}, 1, 1), false},
		{"near: same infinity", Near(f(inf), []float64{math.Inf(1)}, 0, 0), true},
		{"scaled", Scaled(f(0.5), f(0), []float64{50}, 0.01), true},
		{"scaled: more", Scaled(f(0.51), f(0), []float64{50}, 0.01), false},
		{"scaled: lengths", Scaled(f(1), f(1), nil, 1), false},
		{"lengths", Equal(f(1, 2), f(1)), false},
		{"aligned", Aligned(f(1, 2, 3), []float64{2, 4, 6}, 0.999999999), true},
		{"aligned: apart", Aligned(f(1, 0), f(1, 1), 0.8), false},
		{"aligned: NaN", Aligned(f(nan), f(1), -1), false},
		{"aligned: lengths", Aligned(f(1), f(1, 2), -1), false},
		{"empty", Near(f(), []float64{}, 0, 0), true},
	}
	for _, tt := range tests {
		if (tt.err == nil) != tt.ok {
			t.Errorf("%s: error %v, want none: %t", tt.name, tt.err, tt.ok)
		}
	}
}

func TestMismatch(t *testing.T) {
	got := []float32{1, 2.5, 3, 40, 5, 6.1, 7.1, 8.1}
	want := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	err := Near(got, want, 0.01, 0)
	var m *Mismatch
	if !errors.As(err, &m) {
		t.Fatalf("error %v, want a *Mismatch", err)
	}
	if m.Count != 5 || m.Len != 8 || m.Worst.Index != 3 || m.Worst.Got != 40 || m.Worst.Want != 4 || len(m.First) != listed {
		t.Errorf("mismatch %+v", m)
	}
	for _, part := range []string{"5 of 8", "[3] got 40, want 4", "[1] got 2.5, want 2", "limit 0.01"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	got[0] = nan
	errors.As(Near(got, want, 0.01, 0), &m)
	if m.Worst.Index != 0 {
		t.Errorf("worst is %v, want the NaN", m.Worst)
	}
}

func TestCosineAndMaxRelative(t *testing.T) {
	tests := []struct {
		a, b []float32
		want float64
	}{
		{[]float32{1, 0}, []float32{0, 2}, 0},
		{[]float32{1, 1}, []float32{-2, -2}, -1},
		{[]float32{0}, []float32{0}, 1},
		{[]float32{0}, []float32{1}, 0},
		{[]float32{3, 4}, []float32{3, 0}, 0.6},
	}
	for _, tt := range tests {
		if got := Cosine(tt.a, tt.b); math.Abs(got-tt.want) > 1e-15 {
			t.Errorf("Cosine(%v, %v) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
	for _, bad := range [][]float32{{nan, 1}, {inf, 1}, {1}} {
		if got := Cosine(bad, []float32{1, 1}); !math.IsNaN(got) {
			t.Errorf("Cosine(%v, [1 1]) = %v, want NaN", bad, got)
		}
	}
	if got := MaxRelative([]float32{1, -9}, []float64{1, -10}); got != 0.1 {
		t.Errorf("MaxRelative = %v, want 0.1", got)
	}
	if got := MaxRelative([]float32{nan}, []float64{1}); !math.IsNaN(got) {
		t.Errorf("MaxRelative of NaN = %v, want NaN", got)
	}
}
