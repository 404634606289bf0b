package actors_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/refmodel"
)

// Checkpoints in the forms in which quantised models are published compute what their numbers say
// in float64, whether experts are in memory or come from the disk. That their numbers are those of
// the checkpoint is the test of package convert.
func TestQuantised(t *testing.T) {
	ids := []int32{3, 14, 15, 9, 26, 53, 58, 9, 7, 9, 3, 23}
	for form, path := range fixtures.Quantised(t) {
		dir := packedFrom(t, path)
		reference, err := refmodel.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		want := reference.Forward(ids)
		for i, cfg := range ways {
			t.Run(fmt.Sprintf("%s/%d", form, i), func(t *testing.T) {
				cfg.Model, cfg.Device = dir, device(t, 2)
				got := logitsOf(t, open(t, cfg), ids)
				vocab, worst, size := len(want.Logits[0]), 0.0, 0.0
				for p, row := range want.Logits {
					for v, x := range row {
						worst, size = max(worst, math.Abs(float64(got[p*vocab+v])-x)), max(size, math.Abs(x))
					}
				}
				if !(worst <= 2e-5*size) || size < 0.1 || want.MinGap() < 1e-4 {
					t.Errorf("logits of up to %g differ by %g; the least gap of routers is %g", size, worst, want.MinGap())
				}
			})
		}
	}
}
