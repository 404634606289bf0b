package forecast

import (
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/diskbw"
	"github.com/moeflux/moeflux-actor/internal/figures"
)

// TestReadWorkers advises more read workers only if every round was clearly faster with them, and
// then plans with them. Of fewer it only says that the engine comes to them, and expects their
// rate.
func TestReadWorkers(t *testing.T) {
	rate := func(depth int, median, least, most float64) DiskRate {
		return DiskRate{Mode: diskbw.Direct, Depth: depth, Spread: figures.Spread{Median: 1e9 * median, Min: 1e9 * least, Max: 1e9 * most}}
	}
	for _, c := range []struct {
		name    string
		setting int // Config.ReadWorkers
		rates   []DiskRate
		want    int     // advised
		reading float64 // what is expected, if it is not the rate of the workers
	}{
		{"faster, but the ranges overlap", 0, []DiskRate{rate(1, 1.45, 1.2, 1.6), rate(4, 1.22, 0.9, 1.5)}, 0, 0},
		{"always faster, but hardly", 0, []DiskRate{rate(1, 1.05, 1.04, 1.06), rate(4, 1.0, 0.99, 1.01)}, 0, 0},
		{"fewer are clearly faster", 0, []DiskRate{rate(1, 1.5, 1.4, 1.6), rate(4, 1.2, 1.1, 1.3)}, 0, 1.5e9},
		{"more are clearly faster", 0, []DiskRate{rate(4, 1.2, 1.1, 1.3), rate(8, 1.5, 1.4, 1.6)}, 8, 0},
		{"the default is the fastest", 0, []DiskRate{rate(1, 1, 1, 1), rate(4, 2, 2, 2)}, 0, 0},
		{"the user has chosen", 4, []DiskRate{rate(1, 1.5, 1.4, 1.6), rate(4, 1.2, 1.1, 1.3)}, 0, 0},
		{"nothing measured", 0, nil, 0, 0},
	} {
		cfg, r := actors.Config{ReadWorkers: c.setting}, &Report{Disk: c.rates}
		advised := r.readWorkers(&cfg, &actors.Info{ExpertIO: actors.ExpertIODirect, ReadWorkers: 4})
		if advised != (c.want > 0) || advised != (r.Plan.Advice != "") || (advised || c.reading > 0) != (len(r.Why) == 1) || advised && cfg.ReadWorkers != c.want {
			t.Errorf("%s: advised %v, %d workers, %q, why %q; want %d", c.name, advised, cfg.ReadWorkers, r.Plan.Advice, r.Why, c.want)
		}
		if (r.reading != nil) != (c.reading > 0) || r.reading != nil && r.reading.Median != c.reading {
			t.Errorf("%s: expects %+v, want %v", c.name, r.reading, c.reading)
		}
	}
}
