package forecast

import (
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/diskbw"
	"github.com/moeflux/moeflux-actor/internal/figures"
)

// TestAdviseReadWorkers advises a number of read workers only if every round was clearly faster
// with it, and then plans with it.
func TestAdviseReadWorkers(t *testing.T) {
	rate := func(depth int, median, least, most float64) DiskRate {
		return DiskRate{Mode: diskbw.Direct, Depth: depth, Spread: figures.Spread{Median: 1e9 * median, Min: 1e9 * least, Max: 1e9 * most}}
	}
	for _, c := range []struct {
		name    string
		setting int // Config.ReadWorkers
		rates   []DiskRate
		want    int
	}{
		{"faster, but the ranges overlap", 0, []DiskRate{rate(1, 1.45, 1.2, 1.6), rate(4, 1.22, 0.9, 1.5)}, 0},
		{"always faster, but hardly", 0, []DiskRate{rate(1, 1.05, 1.04, 1.06), rate(4, 1.0, 0.99, 1.01)}, 0},
		{"clearly faster", 0, []DiskRate{rate(1, 1.5, 1.4, 1.6), rate(4, 1.2, 1.1, 1.3)}, 1},
		{"the default is the fastest", 0, []DiskRate{rate(1, 1, 1, 1), rate(4, 2, 2, 2)}, 0},
		{"the user has chosen", 4, []DiskRate{rate(1, 1.5, 1.4, 1.6), rate(4, 1.2, 1.1, 1.3)}, 0},
		{"nothing measured", 0, nil, 0},
	} {
		cfg, r := actors.Config{ReadWorkers: c.setting}, &Report{Disk: c.rates}
		advised := r.adviseReadWorkers(&cfg, &actors.Info{ExpertIO: actors.ExpertIODirect, ReadWorkers: 4})
		if advised != (c.want > 0) || advised != (r.Plan.Advice != "") || advised != (len(r.Why) == 1) || advised && cfg.ReadWorkers != c.want {
			t.Errorf("%s: advised %v, %d workers, %q, why %q; want %d", c.name, advised, cfg.ReadWorkers, r.Plan.Advice, r.Why, c.want)
		}
	}
}
