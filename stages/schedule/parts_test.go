package schedule_test

import (
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
