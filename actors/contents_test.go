package actors_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/synth"
	state "github.com/moeflux/moeflux-actor/stages/dispatch"
)

// TestDescribeShapes holds what Describe says of full-size models against the byte tables that were
// computed from the published shapes alone (kernels.md, 15.2 and 15.3): experts and their records,
// resident weights, bytes a token touches, state and key-value bytes.
func TestDescribeShapes(t *testing.T) {
	const mb, gb = 1e6, 1e9
	for _, want := range []struct {
		shape                      string
		resident, streamed, record float64
		dense, experts             float64 // touched by a token
		state                      float64 // fixed, per sequence
		kvElements                 float64 // per position
	}{
		{"qwen3.5-35b-a3b", 1.39 * gb, 18.1 * gb, 1769472, (723.8 + 93.5 + 286.1) * mb, 566.2 * mb, (62.9 + 2.9) * mb, 10240},
		{"qwen3.5-122b-a10b", 3.48 * gb, 65.2 * gb, 5308416, 2326*mb + 295.7*mb + 429.1*mb, 2038 * mb, (151.0 + 5.3) * mb, 12288},
		{"qwen3.5-397b-a17b", 5.52 * gb, 217.4 * gb, 7077888, 3875*mb + 496.6*mb + 572.1*mb, 4247 * mb, (188.7 + 6.6) * mb, 15360},
		{"qwen3-next-80b-a3b", 1.36 * gb, 43.5 * gb, 1769472, (868.5 + 138.9 + 175.0) * mb, 849.3 * mb, (75.5 + 3.5) * mb, 12288},
		{"qwen3-30b-a3b", 0.87 * gb, 16.3 * gb, 2654208, (509.6 + 13.8 + 175.0) * mb, 1019 * mb, 0, 49152},
		{"deepseek-v3", 9.78 * gb, 367.8 * gb, 24772608, 6420*mb + 2320*mb + 521.3*mb, 11494 * mb, 0, 35136},
	} {
		t.Run(want.shape, func(t *testing.T) {
			s, err := synth.Named(want.shape)
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "model")
			if err := synth.Outline(dir, synth.Options{Shape: s}); err != nil {
				t.Fatal(err)
			}
			c, err := actors.Describe(actors.Config{Model: dir})
			if err != nil {
				t.Fatal(err)
			}
			near := func(what string, got int64, want float64) {
				if math.Abs(float64(got)-want) > 0.02*want {
					t.Errorf("%s: %d, want %.4g to 2 %%", what, got, want)
				}
			}
			near("resident", c.WeightBytes, want.resident)
			near("streamed", c.ExpertBytes, want.streamed)
			near("record", int64(c.Record.Bytes), want.record)
			near("resident bytes of a token", c.TouchedWeights, want.dense)
			near("expert bytes of a token", c.TouchedExperts(c.Model.NumExpertsPerTok), want.experts)
			near("state", int64(state.RecurrentBytes(c.Model, gpu.KVF32, 64)), want.state)
			near("key-value bytes of a position", int64(state.PageBytes(c.Model, gpu.KVF32, 1)), 4*want.kvElements)
		})
	}
}
