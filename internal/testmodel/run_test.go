package testmodel_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/refmodel"
	"github.com/moeflux/moeflux-actor/internal/testmodel"
	"github.com/moeflux/moeflux-actor/io/convert"
)

// The converter takes every tensor and misses none, and the numbers stay in the range that the
// package promises.
func TestConvertAndRun(t *testing.T) {
	for _, arch := range testmodel.Archs() {
		t.Run(string(arch), func(t *testing.T) {
			for seed := range uint64(6) {
				s := random(arch, seed)
				src, cfg := write(t, s, seed)
				dst := filepath.Join(t.TempDir(), "packed")
				if err := convert.Convert(context.Background(), src, dst, convert.Options{Bits: []int{0, 4, 8}[seed%3]}); err != nil {
					t.Fatalf("seed %d, %+v: convert: %v", seed, s, err)
				}
				m, err := refmodel.Open(dst)
				if err != nil {
					t.Fatalf("seed %d, %+v: %v", seed, s, err)
				}
				if !reflect.DeepEqual(m.Config(), cfg) {
					t.Errorf("seed %d: the pack's configuration is %+v, want %+v", seed, m.Config(), cfg)
				}
				checkOrder(t, fmt.Sprintf("seed %d, %+v", seed, s), m)
			}
		})
	}
}

// checkOrder runs some tokens and checks the size of the numbers.
func checkOrder(t *testing.T, what string, m *refmodel.Model) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 5))
	var ids []int32
	for range 24 {
		ids = append(ids, r.Int32N(int32(m.Config().VocabSize)))
	}
	trace := m.Forward(ids)
	for i, layer := range trace.Hidden {
		if rms := rms(layer); !(rms > 0.1 && rms < 30) {
			t.Errorf("%s: the residual stream after %d layers has rms %.3g, want 0.1 to 30", what, i, rms)
		}
	}
	for i := range trace.Mixer {
		for part, x := range map[string][][]float64{"mixer": trace.Mixer[i], "feed-forward": trace.FFN[i]} {
			if rms := rms(x); !(rms > 0.05 && rms < 20) {
				t.Errorf("%s: %s of layer %d has rms %.3g, want 0.05 to 20", what, part, i, rms)
			}
		}
	}
	if rms := rms(trace.Logits); !(rms > 1 && rms < 8) {
		t.Errorf("%s: the logits have rms %.3g, want 1 to 8", what, rms)
	}
	if loss := trace.Loss(); math.IsNaN(loss) || math.IsInf(loss, 0) {
		t.Errorf("%s: loss %v", what, loss)
	}
}

func rms(rows [][]float64) float64 {
	sum, n := 0.0, 0
	for _, row := range rows {
		for _, x := range row {
			sum += x * x
		}
		n += len(row)
	}
	return math.Sqrt(sum / float64(n))
}
