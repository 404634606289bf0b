package schedule_test

import (
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// TestParts has seven sequences decode. On one device they share a step; on two, which compute a
// step one after the other, they have two steps from the start, and one of them beside a prompt.
func TestParts(t *testing.T) {
	for _, c := range []struct {
		parts, steps int
		prompt       bool
		want         []int // rows of decode steps
	}{
		{0, 1, false, []int{7}}, {1, 2, false, []int{7}}, {2, 2, false, []int{4, 3}}, {3, 3, false, []int{3, 3, 1}}, {2, 2, true, []int{7}},
	} {
		s := schedule.New[*chunk](schedule.Config{Rows: 16, Steps: c.steps, Layers: 4, Share: 0.5, Parts: c.parts})
		s.Now(1)
		if c.prompt {
			s.Add(&chunk{id: 100, left: 9})
		}
		for i := range 7 {
			s.Add(&chunk{id: i, left: 1})
		}
		var got []int
		for id := uint64(1); ; id++ {
			kind, shares := s.Next(id)
			if len(shares) == 0 {
				break
			}
			if kind == schedule.Decode {
				got = append(got, len(shares))
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%+v: decode steps of %v rows", c, got)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%+v: decode steps of %v rows", c, got)
			}
		}
	}
}

// TestPartsShare lets sequences decode on two devices, whose callers come back late now and then.
// They are in two steps of the same size nearly all the time: both devices work.
func TestPartsShare(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 11))
		n := 8 + 2*r.IntN(29)
		one := 0.1e6 + 0.5e6*r.Float64()
		c := costs{layer: concave(one, one*(4+2*r.Float64())), head: 0.3e6, think: int64(30e3 + 100e3*r.Float64()), vary: 5 * r.Float64(), pause: 0.004 * r.Float64(), noise: 0.05}
		cfg := schedule.Config{Rows: 512, Steps: 2, Layers: 16, Share: 0.65, Parts: 2}
		g := newRig(cfg, c, seed)
		for i := range n {
			g.decoder(i, int64(50e6*r.Float64()))
		}
		g.run(t, func() bool { return g.least() >= 10 })
		since := g.now
		g.run(t, func() bool { return g.least() >= 300 })
		_, tokens := g.apart(since)
		step := float64(cfg.Layers/2)*c.layer(n/2) + c.head // of half of them, on one device
		if got, most := float64(tokens)/float64(g.now-since), float64(n/2)/step; got < 0.88*most {
			t.Errorf("seed %d: %d sequences get %.0f tokens a second, of the %.0f that two devices could give", seed, n, 1e9*got, 1e9*most)
		}
	}
}
