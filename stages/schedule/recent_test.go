package schedule_test

import (
	"testing"

	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// TestWhoDecodedLately holds that a prompt's steps are cut for a sequence that decoded a moment ago
// and will be back, and not for one that has brought the prompt itself, or is gone.
func TestWhoDecodedLately(t *testing.T) {
	const token, layers = 1_000_000, 4
	for _, c := range []struct {
		name string
		back bool
		cut  bool
	}{{"another one", false, true}, {"the same one", true, false}} {
		s := schedule.New[*chunk](schedule.Config{Rows: 512, Steps: 1, Layers: layers, Share: 0.5})
		now, id := int64(1), uint64(0)
		step := func(c *chunk, seq uint64, layer int64) (rows int) {
			s.Add(c)
			id++
			_, shares := s.Next(id)
			if len(shares) != 1 {
				t.Fatalf("%s: %v in a step, want one request", c, shares)
			}
			for range layers {
				s.Begun(id, 1)
				now += layer
				s.Now(now)
				s.Retired(id, 1)
			}
			s.Asked(id)
			s.Ended(id)
			return shares[0].Rows
		}
		s.Now(now)
		step(&chunk{id: 9, left: 512}, 9, 200*token/layers) // what a layer of many rows takes
		for range 3 {
			s.Unexpect(1)
			step(&chunk{id: 1, left: 1}, 1, token/layers)
			s.Expect(1)
		}
		seq := uint64(2)
		if c.back {
			seq = 1
		}
		s.Unexpect(seq)
		if rows := step(&chunk{id: int(seq), left: 512}, seq, token); (rows < 512) != c.cut {
			t.Errorf("a prompt after a token of %s has %d rows in its step", c.name, rows)
		}
	}
}
