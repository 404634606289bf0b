package bench

import (
	"math"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/cachesim"
)

// TestBounds bounds two tokens of two layers by hand. A read takes 2 s, a token computes for 6 s, a
// layer for 3.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		misses                     cachesim.Misses
		together, byToken, byLayer float64
	}{
		{cachesim.Misses{0, 0, 0, 0}, 6, 6, 6},
		{cachesim.Misses{5, 1, 0, 0}, 6, (12 + 6) / 2., (10 + 3 + 3 + 3) / 2.},
		{cachesim.Misses{4, 4, 1, 3}, 12, (16 + 8) / 2., (8 + 8 + 3 + 6) / 2.},
	} {
		b := boundsOf(c.misses, 2, 6, 2)
		for name, x := range map[string][2]float64{"together": {b.Together, c.together}, "by token": {b.ByToken, c.byToken}, "by layer": {b.ByLayer, c.byLayer}} {
			if math.Abs(x[0]-x[1]) > 1e-12 {
				t.Errorf("%v, %s: %v s, want %v", c.misses, name, x[0], x[1])
			}
		}
	}
}
