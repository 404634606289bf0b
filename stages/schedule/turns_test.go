package schedule_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// mixed lets a sequence decode beside a prompt, as often as asked, and returns the last time's 99th
// percentile of gaps in gaps alone, and the prompt's speed of its speed alone.
func mixed(t *testing.T, cfg schedule.Config, c costs, rows, times int) (gap, speed float64) {
	t.Helper()
	alone := newRig(cfg, c, 1)
	alone.prompt(1, 0, rows)
	alone.run(t, func() bool { return false })

	r := newRig(cfg, c, 2)
	r.decoder(7, 0)
	r.run(t, func() bool { return len(r.tokens[7]) > 50 })
	lone := r.gaps(7, 0, r.now)[25]
	var from int64
	for k := range times {
		n := len(r.tokens[7])
		r.run(t, func() bool { return len(r.tokens[7]) > n+20 })
		from = r.now
		r.prompt(100+k, from, rows)
		r.run(t, func() bool { return r.prompts[100+k] > 0 })
	}
	to := r.prompts[100+times-1]
	gaps := r.gaps(7, from, to)
	return float64(gaps[len(gaps)*99/100]) / float64(lone), float64(alone.prompts[1]) / float64(to-from)
}

// TestCurve holds the gap of a sequence that decodes beside a prompt, and the prompt's speed, to
// what the shares promise: with the costs of a model of many layers, and of a tiny one.
func TestCurve(t *testing.T) {
	large := costs{layer: concave(1.6e6, 110e6), head: 4e6, think: 50e3, noise: 0.05}
	tiny := costs{layer: concave(30e3, 4e6), head: 30e3, think: 30e3, noise: 0.05}
	for _, m := range []struct {
		name       string
		preempts   bool
		layers     int
		c          costs
		share      float64
		gap, speed float64 // most, least
	}{
		{"many layers", false, 48, large, 0.5, 2.1, 0.42},
		{"many layers", false, 48, large, 0.65, 3, 0.55},
		{"many layers", false, 48, large, 0.8, 5.3, 0.75},
		{"many layers", false, 48, large, 0.9, 10.5, 0.85},
		{"many layers", false, 48, large, 1, 70, 0.95},
		{"few layers", false, 8, tiny, 0.5, 2.1, 0.25},
		{"few layers", false, 8, tiny, 0.65, 3, 0.38},
		{"few layers", false, 8, tiny, 0.9, 10.5, 0.78},
		{"few layers", false, 8, tiny, 1, 120, 0.95},
		{"many layers", true, 48, large, 0.5, 2.05, 0.48},
		{"many layers", true, 48, large, 0.65, 2.95, 0.63},
		{"many layers", true, 48, large, 0.9, 10.1, 0.87},
		{"many layers", true, 48, large, 1, 70, 0.95},
		{"few layers", true, 8, tiny, 0.5, 2.1, 0.45},
		{"few layers", true, 8, tiny, 0.65, 3, 0.6},
		{"few layers", true, 8, tiny, 0.9, 10.3, 0.85},
		{"few layers", true, 8, tiny, 1, 120, 0.95},
	} {
		gap, speed := mixed(t, schedule.Config{Rows: 512, Steps: 1, Layers: m.layers, Share: m.share, Preempts: m.preempts}, m.c, 3500, 2)
		if gap > m.gap || speed < m.speed {
			t.Errorf("%s, preempting %v, share %.2f: 99 %% of gaps within %.2f steps and the prompt at %.0f %%, want %.1f and %.0f %%",
				m.name, m.preempts, m.share, gap, 100*speed, m.gap, 100*m.speed)
		}
	}
}

// TestNobodyWaitsForEver lets sequences decode and prompts come at random, with random costs.
// Between two tokens of a sequence there are at most the layers of one prompt step and a few decode
// steps, and everything ends.
func TestNobodyWaitsForEver(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		layers, rows := 1+r.IntN(12), 1+r.IntN(64)
		lo := 1e4 + 1e6*r.Float64()
		c := costs{
			layer: concave(lo, lo*(1+float64(rows)*r.Float64())), head: 1e6 * r.Float64(), think: int64(1e6 * r.Float64()), noise: 0.5 * r.Float64(),
		}
		share := 1 - 0.99*r.Float64()
		if r.IntN(4) == 0 {
			share = 1
		}
		g := newRig(schedule.Config{Rows: rows, Steps: 1 + r.IntN(2), Layers: layers, Share: share, Preempts: r.IntN(2) == 0}, c, seed)
		decoders := 1 + r.IntN(5)
		for i := range decoders {
			g.decoder(i, int64(1e6*r.Float64()))
		}
		prompts := 1 + r.IntN(6)
		for i := range prompts {
			g.prompt(100+i, int64(1e7*r.Float64()), 1+r.IntN(300))
		}
		g.run(t, func() bool { return len(g.prompts) == prompts && g.least() > 20 })
		// all that can lie between two tokens: a whole prompt step of each lane, and the decode
		// steps before and of this one, which hold all that decode only if there is room for them
		turns := int64(1 + (decoders-1)/rows)
		most := int64(1+g.cfg.Steps)*int64(1.5*float64(layers)*c.layer(rows)+1.5*c.head)*3*turns + turns*(linger+c.think)
		for i := range decoders {
			if gaps := g.gaps(i, 0, g.now); gaps[len(gaps)-1] > most {
				t.Fatalf("seed %d: sequence %d waited %d µs for a token, want at most %d", seed, i, gaps[len(gaps)-1]/1000, most/1000)
			}
		}
	}
}

// least returns how many tokens the sequence with the fewest has.
func (r *rig) least() int {
	n := math.MaxInt
	for _, all := range r.tokens {
		n = min(n, len(all))
	}
	return n
}

// concave returns the time of a layer by rows: one row takes lo, and 512 take hi.
func concave(lo, hi float64) func(int) float64 {
	return func(rows int) float64 {
		x := float64(rows-1) / 511
		return lo + (hi-lo)*(0.1*min(1, 6*x)+0.9*x)
	}
}
