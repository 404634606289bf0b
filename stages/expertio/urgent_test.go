package expertio

import (
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
)

// While an urgent step is under way others read nothing, unless it follows the one before so
// closely that they had the disk for less than a quarter of that one's time.
func TestReadsBesideUrgent(t *testing.T) {
	for _, c := range []struct {
		took, rest int64
		beside     int // reads
	}{{100, 10, 1}, {100, 25, 1}, {100, 26, 0}, {100, 1000, 0}, {1000, 100, 1}} {
		r := newReader(t, Config{Layers: 2, Experts: 8, Slots: 8, WaveSlots: 4, RingDepth: 2, Reads: 2})
		first, second := routed(1, true, 7), routed(2, true, 6)
		r.step(first, 10)
		r.step(&stages.DrainStep{Step: first.Step}, c.took)
		r.step(second, c.rest)
		if reads := r.step(routed(3, false, 0, 1, 2), 10); len(reads) != c.beside {
			t.Errorf("%d ns after an urgent step of %d ns: %d reads beside the next, want %d", c.rest, c.took, len(reads), c.beside)
		}
		if reads := r.step(&stages.DrainStep{Step: second.Step}, 10); len(reads) != 2-c.beside {
			t.Errorf("%d ns after an urgent step of %d ns: %d reads after the next, want %d", c.rest, c.took, len(reads), 2-c.beside)
		}
	}
}
