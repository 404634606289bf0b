package host

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/numcmp"
)

// primitive is a primitive of type vectors as a function of n floats: of operands in [8, n], and of
// y, which holds the first operand.
type primitive struct {
	name     string
	multiple func(v *vectors) int // of which n is one; nil: any
	run      func(v *vectors, y []float32, in [][]float32, n int)
}

func primitives() []primitive {
	pairs := func(v *vectors) int { return 2 * v.lanes }
	lanes := func(v *vectors) int { return max(2, v.lanes) }
	rope := func(f func(v *vectors) func(x, table []float32, heads, stride int)) func(v *vectors, y []float32, in [][]float32, n int) {
		return func(v *vectors, y []float32, in [][]float32, n int) { // two heads
			x := append(append([]float32(nil), in[0]...), in[1]...)
			f(v)(x, in[2], 2, n)
			for i := range y {
				y[i] = x[i] + 3*x[n+i]
			}
		}
	}
	return []primitive{
		{"dot", nil, func(v *vectors, y []float32, in [][]float32, n int) { y[0] = v.dot(in[0], in[1]) }},
		{"norm", nil, func(v *vectors, y []float32, in [][]float32, n int) { v.norm(y, in[0], in[1], 0.3) }},
		{"bare norm", nil, func(v *vectors, y []float32, in [][]float32, n int) { v.norm(y, in[0], nil, 0.3) }},
		{"gatedNorm", nil, func(v *vectors, y []float32, in [][]float32, n int) { v.gatedNorm(y, in[0], in[1], in[2], 0.3) }},
		{"add", nil, func(v *vectors, y []float32, in [][]float32, n int) { v.add(y, in[0], in[1]) }},
		{"axpy", nil, func(v *vectors, y []float32, in [][]float32, n int) { v.axpy(y, in[1], 0.3) }},
		{"merge", nil, func(v *vectors, y []float32, in [][]float32, n int) { v.merge(y, in[1], 0.3, 1.7) }},
		{"swiglu", nil, func(v *vectors, y []float32, in [][]float32, n int) { v.swiglu(y, in[0], in[1]) }},
		{"swiglu in place", nil, func(v *vectors, y []float32, in [][]float32, n int) { v.swiglu(y, y, in[1]) }},
		{"gate", nil, func(v *vectors, y []float32, in [][]float32, n int) { v.gate(y, in[1]) }},
		{"combine", nil, func(v *vectors, y []float32, in [][]float32, n int) {
			v.combine(y, in[0], rows(in[1:4]), []float32{0.3, -0.9, 1.7}, in[4], 0.7)
		}},
		{"combine alone", nil, func(v *vectors, y []float32, in [][]float32, n int) {
			v.combine(y, in[0], rows(in[1:2]), []float32{0.3}, nil, 0.7)
		}},
		{"conv", nil, func(v *vectors, y []float32, in [][]float32, n int) {
			v.conv(y, rows(in[:4]), in[4], in[5], in[6], in[7])
		}},
		{"rope", pairs, rope(func(v *vectors) func(x, table []float32, heads, stride int) { return v.rope })},
		{"ropePairs", lanes, rope(func(v *vectors) func(x, table []float32, heads, stride int) { return v.ropePairs })},
	}
}

// rows joins operands.
func rows(in [][]float32) (all []float32) {
	for _, x := range in {
		all = append(all, x...)
	}
	return all
}

// TestPrimitives checks each variant, for all small sizes, against the portable definition. Nothing
// may be written after the result, and operands at another place in memory must give the same bits.
func TestPrimitives(t *testing.T) {
	eachVectors(t, func(t *testing.T, v *vectors) {
		for _, p := range primitives() {
			for n := 1; n <= 70; n++ {
				if p.multiple != nil && n%p.multiple(v) != 0 {
					continue
				}
				rng := rand.New(rand.NewPCG(uint64(n), 5))
				var in, moved [][]float32
				for range 8 {
					x := normals(rng, n)
					in, moved = append(in, x), append(moved, append([]float32{9}, x...)[1:])
				}
				run := func(v *vectors, in [][]float32) []float32 {
					y := append(append([]float32(nil), in[0]...), -7, -7)
					p.run(v, y[:n:n], in, n)
					return y
				}
				name := fmt.Sprintf("%s of %d", p.name, n)
				got, want, limit := run(v, in), run(&portableVectors, in), make([]float64, n+2)
				if err := numcmp.Equal(run(v, moved), got); err != nil {
					t.Fatalf("%s at another place: %v", name, err)
				}
				for i := range limit {
					size := 1. // of an element's terms, several times over
					for _, x := range in {
						size += math.Abs(float64(x[min(i, n-1)])) * 4
					}
					limit[i] = size * size / (1 << 24)
					if p.name == "dot" {
						limit[i] *= float64(n)
					}
				}
				exact := make([]float64, len(want))
				for i, w := range want {
					exact[i] = float64(w)
				}
				exact[n], exact[n+1], limit[n], limit[n+1] = -7, -7, 0, 0
				if err := numcmp.Scaled(got, exact, limit, 1); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
}
