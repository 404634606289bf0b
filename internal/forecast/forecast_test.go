package forecast

import (
	"math"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
)

func TestForecast(t *testing.T) {
	for _, c := range []struct {
		name         string
		hits         Kept
		memory, disk float64
		want         *Forecast
	}{
		{"all there", Kept{1, "x"}, 50e9, 0, &Forecast{TokensPerSecond: 50, Bound: "memory", ComputeSeconds: 0.02, Low: 27.5, KeptRate: 1, KeptRateFrom: "x", MemoryBandwidth: 50e9}},
		{"the disk is slower", Kept{0.75, "x"}, 50e9, 2e9, &Forecast{TokensPerSecond: 20, Low: 11.578947368, Bound: "disk", ComputeSeconds: 0.02, DiskSeconds: 0.05, KeptRate: 0.75,
			KeptRateFrom: "x", MemoryBandwidth: 50e9, DiskBandwidth: 2e9}},
		{"unknown hits", Kept{}, 50e9, 2e9, nil},
		{"unknown disk", Kept{0.5, "x"}, 50e9, 0, nil},
		{"unknown memory", Kept{0.5, "x"}, 0, 1e9, nil},
	} {
		got := Of(Needs{1e9, 4e8}, c.hits, c.memory, c.disk)
		if got != nil {
			got.Low = math.Round(1e9*got.Low) / 1e9
		}
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	for _, c := range []struct{ share, want float64 }{{0, 0}, {0.25, 0.7}, {0.375, 0.8145}, {1, 1}} {
		if got := byTraining(c.share); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("share %g: got %g, want %g", c.share, got, c.want)
		}
	}
	i := actors.Info{ExpertIO: actors.ExpertIOMmap, ExpertBytes: 100, SlotBytes: 10}
	if got, err := Expect(&i, Text{Config: actors.Config{Model: t.TempDir()}, Free: 50}); err != nil || got.From != "" {
		t.Errorf("mapped experts that do not fit: got %+v, %v", got, err)
	}
}

// TestForecastOfMeasuredSpeeds puts in the bandwidths of machines on which models of real size were
// measured, with the bytes that their tokens touch: every measured speed lies within the forecast.
func TestForecastOfMeasuredSpeeds(t *testing.T) {
	const (
		touched30, experts30 = 1755e6, 1019e6 // qwen3-30b-a3b, 4 bits, 8 experts
		touched35, experts35 = 1734e6, 566e6  // qwen3.5-35b-a3b
	)
	for _, c := range []struct {
		name             string
		touched, experts int64
		kept             float64
		memory, disk     float64
		measured         []float64 // docs/experiments.md, README.md
	}{
		{"Zen 5, 30b in memory", touched30, experts30, 1, 49e9, 0, []float64{22.6, 23.2}},
		{"Zen 5, 35b in memory", touched35, experts35, 1, 49e9, 0, []float64{20.8}},
		{"Xeon, 30b in memory", touched30, experts30, 1, 26.5e9, 0, []float64{12.3}},
		{"Xeon, 35b in memory", touched35, experts35, 1, 26.5e9, 0, []float64{10.6}},
		{"Xeon, 16 threads, 30b in memory", touched30, experts30, 1, 53 * touched30, 0, []float64{33.3}},
		{"Xeon, 8 threads", touched30, experts30, 1, 44 * touched30, 0, []float64{25.5}},
		{"Xeon, 4 threads", touched30, experts30, 1, 24 * touched30, 0, []float64{17.0}},
		{"Xeon, 1 thread", touched30, experts30, 1, 8.2 * touched30, 0, []float64{6.7}},
		{"Xeon, 30b, a quarter in memory", touched30, experts30, 0.74, 26.5e9, 1.4e9, []float64{5.2}},
		{"Xeon, 30b, half in memory", touched30, experts30, 0.86, 26.5e9, 1.4e9, []float64{7.0}},
	} {
		f := Of(Needs{c.touched, c.experts}, Kept{c.kept, "x"}, c.memory, c.disk)
		for _, speed := range c.measured {
			if f == nil || speed < f.Low || speed > f.TokensPerSecond {
				t.Errorf("%s: measured %g tokens/s, forecast %+v", c.name, speed, f)
			}
		}
	}
}
