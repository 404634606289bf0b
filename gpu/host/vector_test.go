package host

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/numcmp"
)

// eachVectors runs a test for the primitives of each variant.
func eachVectors(t *testing.T, f func(t *testing.T, v *vectors)) {
	for _, name := range Variants() {
		t.Run("variant="+name, func(t *testing.T) { f(t, vectorsOf(name)) })
	}
}

// TestSigmoid checks that σ is within four units in the last place of the definition over the range
// of float32, and right at its ends: an exponential to two units, and a quotient.
func TestSigmoid(t *testing.T) {
	inf := float32(math.Inf(1))
	xs := []float32{0, float32(math.Copysign(0, -1)), inf, -inf, float32(math.NaN()), math.MaxFloat32, -math.MaxFloat32, 1e-45, -1e-45, 87.3, -87.3, 88.8, -88.8, -104}
	for x := float32(-90); x < 90; x += 0.00713 {
		xs = append(xs, x)
	}
	eachVectors(t, func(t *testing.T, v *vectors) {
		got := make([]float32, len(xs))
		for i := range got {
			got[i] = 1
		}
		v.gate(got, xs)
		for i, x := range xs {
			want := float32(1 / (1 + math.Exp(-float64(x))))
			// Below the normal range a unit is coarse: a quotient of subnormal numbers is right to
			// one unit.
			if math.IsNaN(float64(x)) != math.IsNaN(float64(got[i])) || !math.IsNaN(float64(x)) && numcmp.ULP(got[i], want) > 4 {
				t.Errorf("σ(%v) = %v, want %v", x, got[i], want)
			}
		}
	})
}

// TestSoftmax checks that the weights of a block are within two units in the last place of e^x, and
// that its sums are carried on.
func TestSoftmax(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	inf := float32(math.Inf(-1))
	eachVectors(t, func(t *testing.T, v *vectors) {
		for range 2000 {
			scores := make([]float32, attnBlock)
			top := float32(lowestScore)
			for i := range scores {
				scores[i] = float32(rng.NormFloat64() * 30)
				if i == 7 {
					scores[i] = inf
				}
				top = max(top, scores[i])
			}
			before := top - float32(rng.ExpFloat64()) // smaller: acc is scaled
			stats, acc := []float32{before, 3}, []float32{1, 2, 5}
			got := append([]float32(nil), scores...)
			v.softmax(got, stats, acc, 3)
			f := math.Exp(float64(before - top))
			sum := 3 * f
			for i, s := range scores {
				want := math.Exp(float64(s - top))
				sum += want
				if numcmp.ULP(got[i], float32(want)) > 2 {
					t.Fatalf("e^%v = %v, want %v", s-top, got[i], want)
				}
			}
			if stats[0] != top || math.Abs(float64(stats[1])-sum) > 1e-6*sum || math.Abs(float64(acc[2])-5*f) > 1e-6*f {
				t.Fatalf("max and sum %v, acc %v, want %v, %v and %v", stats, acc, top, sum, 5*f)
			}
		}
		stats, acc, scores := []float32{lowestScore, 0}, []float32{0}, make([]float32, attnBlock)
		for i := range scores {
			scores[i] = inf
		}
		if v.softmax(scores, stats, acc, 1); stats[0] != lowestScore || stats[1] != 0 || scores[5] != 0 {
			t.Errorf("scores of -Inf alone: weights %v, max and sum %v", scores[:2], stats)
		}
	})
}

// TestRow checks that both layouts and all variants give a row the bits that package quant unpacks.
func TestRow(t *testing.T) {
	const rows = 32
	for _, f := range panelFormats() {
		cols := 3 * f.Group()
		rng := rand.New(rand.NewPCG(uint64(f.Bits()), uint64(f.Group())))
		m := matrix{rows: rows, cols: cols, format: f, rowBytes: f.WeightBytes(1, cols), weight: codesBeside(rng, f, f.WeightBytes(rows, cols))}
		m.fillNumbers(rng)
		panels := inPanels(&m)
		eachVectors(t, func(t *testing.T, v *vectors) {
			for o := range rows {
				want := make([]float32, cols)
				f.Unpack(want, cols, m.weight, m.scales, m.biases, o)
				for _, m := range []*matrix{&m, &panels} {
					got := make([]float32, cols)
					v.row(got, m, o)
					if err := numcmp.Equal(got, want); err != nil {
						t.Errorf("%v row %d: %v", m.format, o, err)
					}
				}
			}
		})
	}
}

// TestMultiply checks that products of odd sizes are near their definition, that nothing is written
// beside them, and that an element's bits do not depend on what else is computed.
func TestMultiply(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	random := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		return x
	}
	eachVectors(t, func(t *testing.T, v *vectors) {
		for _, size := range [][3]int{{1, 1, 1}, {8, 64, 128}, {15, 3, 31}, {23, 17, 33}, {4, 128, 64}, {7, 5, 100}} {
			rows, depth, cols := size[0], size[1], size[2]
			as, bs, cs := depth+3, cols+1, cols+2
			a, b, c := random(rows*as), random(depth*bs), random(rows*cs)
			for _, sum := range []bool{false, true} {
				got := append([]float32(nil), c...)
				v.multiply(got, a, b, cs, as, bs, rows, depth, cols, sum)
				for i := range got {
					r, j := i/cs, i%cs
					want, size := float64(c[i]), math.Abs(float64(c[i]))
					if j < cols {
						if !sum {
							want = 0
						}
						for k := range depth {
							p := float64(a[r*as+k]) * float64(b[k*bs+j])
							want, size = want+p, size+math.Abs(p)
						}
						one := []float32{c[i]}
						v.multiply(one, a[r*as:], b[j:], 1, as, bs, 1, depth, 1, sum)
						if one[0] != got[i] {
							t.Fatalf("%v: element %d,%d alone is %v, together %v", size, r, j, one[0], got[i])
						}
					}
					if off := math.Abs(float64(got[i]) - want); off > 1e-6*size || j >= cols && off != 0 {
						t.Fatalf("%v sum=%t: element %d,%d is %v, want %v", size, sum, r, j, got[i], want)
					}
				}
			}
		}
	})
}

// TestTranspose transposes odd numbers of rows and columns.
func TestTranspose(t *testing.T) {
	eachVectors(t, func(t *testing.T, v *vectors) {
		for _, size := range [][2]int{{1, 1}, {16, 4}, {33, 7}, {40, 64}, {5, 3}} {
			rows, cols := size[0], size[1]
			src, dst := make([]float32, rows*(cols+1)), make([]float32, cols*(rows+2))
			for i := range src {
				src[i] = float32(i + 1)
			}
			v.transposeAll(dst, src, rows+2, cols+1, rows, cols)
			for i, got := range dst {
				c, r := i/(rows+2), i%(rows+2)
				want := float32(0)
				if r < rows {
					want = src[r*(cols+1)+c]
				}
				if got != want {
					t.Fatal(fmt.Sprint(size, " element ", c, r, " is ", got, ", want ", want))
				}
			}
		}
	})
}
