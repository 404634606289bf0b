package main

import (
	"math"
	"strings"
	"testing"
)

func TestRank(t *testing.T) {
	// Three settings: two that no measurement tells apart, and one that is much faster.
	measured := [][]float64{{100, 102, 101}, {101, 100, 102}, {150, 151, 149}}
	r := rank([]float64{99, 98, 140}, measured)
	if r.pairs != 3 || r.clear != 2 || r.right != 2 {
		t.Errorf("of %d pairs %d are clear and %d right, want 3, 2, 2", r.pairs, r.clear, r.right)
	}
	if r := rank([]float64{99, 141, 140}, measured); r.clear != 2 || r.right != 1 {
		t.Errorf("%d of %d pairs are right, want 1 of 2", r.right, r.clear)
	}
	if r := rank([]float64{99, 140, 140}, measured); r.right != 1 {
		t.Errorf("%d pairs are right where two predictions are equal, want 1", r.right)
	}
	// By the definition: six squared distances of 1 % each from three means, with 6 degrees of
	// freedom.
	if want := 0.0094; math.Abs(r.spread-want) > 0.0005 {
		t.Errorf("the spread is %.4f, want %.4f", r.spread, want)
	}
}

func TestCorrelation(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3, 4}, []float64{10, 20, 30, 40}, 1},
		{[]float64{1, 2, 3, 4}, []float64{4, 3, 2, 1}, -1},
		{[]float64{1, 2, 3, 4, 5}, []float64{2, 1, 4, 3, 5}, 0.8}, // 1 - 6·4/(5·24)
		{[]float64{1, 1, 2}, []float64{1, 2, 3}, math.Sqrt(3) / 2},
	} {
		if got := correlation(c.a, c.b); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v and %v: %v, want %v", c.a, c.b, got, c.want)
		}
	}
	// The same order in all turns, and none.
	if got := again([][]float64{{1, 2}, {3, 4}, {5, 6}}); got != 1 {
		t.Errorf("again is %v, want 1", got)
	}
	if got := again([][]float64{{1, 6}, {3, 4}, {5, 2}}); got != -1 {
		t.Errorf("again is %v, want -1", got)
	}
}

// A recording whose replay is too far off predicts nothing, and that is what is printed.
func TestNothingPredicted(t *testing.T) {
	refused := &table{rows: []row{
		{name: "as recorded", measured: []float64{40, 41}, predicted: 44}, {name: "--ring-depth 1", measured: []float64{38, 39}, refused: "the replay misses something"},
	}}
	var out strings.Builder
	refused.print(&out)
	printSum([]*table{refused}, &out)
	if got := out.String(); !strings.Contains(got, "the replay misses something") || !strings.HasSuffix(got, "\nnothing was predicted\n") {
		t.Errorf("got\n%s", got)
	}
}
