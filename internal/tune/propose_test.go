package tune

import (
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/tuned"
)

// names writes candidates and what is predicted of them.
func names(candidates []*Candidate) (all []string, predicted int) {
	for _, c := range candidates {
		if c.Predicted != nil {
			predicted++
		}
		all = append(all, c.String())
	}
	return all, predicted
}

func never() bool { return false }

// Proposals are the best combination without what adds nothing, the best of each setting, and what
// no replay can tell, but for what the user has given.
func TestPropose(t *testing.T) {
	law := func(s tuned.Settings) (float64, bool) {
		saves := 0.0
		if s.ReadWorkers == 8 {
			saves += 0.10
		}
		if s.ReadWorkers == 16 {
			saves += 0.08
		}
		if s.RingDepth == 3 {
			saves += 0.04
		}
		if s.RingDepth == 4 {
			saves += 0.042
		}
		if s.Prefetch == "last-token" { // is of use beside few workers only
			saves += 0.03
			if s.ReadWorkers >= 8 {
				saves -= 0.029
			}
		}
		return saves, s.Prefetch != "next-gate" // the recording does not tell
	}
	plan := &actors.Info{Threads: 8, ReadWorkers: 4}
	for _, c := range []struct {
		name      string
		predict   predictor
		given     tuned.Settings
		over      func() bool
		want      []string
		predicted int
	}{
		{"all", law, tuned.Settings{}, never,
			[]string{"--ring-depth 4 --read-workers 8", "--read-workers 8", "--ring-depth 4", "--prefetch last-token", "--read-workers 1", "--read-workers 8", "--threads 7", "--threads 4", "--prefetch-layers 1", "--prefetch-layers 2"}, 6},
		{"workers are given", law, tuned.Settings{ReadWorkers: 2, Threads: 3}, never,
			[]string{"--ring-depth 4 --prefetch last-token", "--ring-depth 4", "--prefetch last-token", "--prefetch-layers 1", "--prefetch-layers 2"}, 3},
		{"nothing helps", func(tuned.Settings) (float64, bool) { return 0.004, true }, tuned.Settings{PrefetchLayers: 1}, never, []string{"--read-workers 1", "--read-workers 8", "--threads 7", "--threads 4"}, 2},
		{"no replay", nil, tuned.Settings{Prefetch: "off", Threads: 8, ReadWorkers: 1}, never,
			[]string{"--ring-depth 3", "--ring-depth 4", "--ring-depth 1", "--ring-depth 2", "--prefetch-layers 1", "--prefetch-layers 2"}, 0},
		{"no time for replays", law, tuned.Settings{Prefetch: "off", PrefetchLayers: 1, ReadWorkers: 1, Threads: 1}, func() bool { return true },
			[]string{"--ring-depth 3", "--ring-depth 4", "--ring-depth 1", "--ring-depth 2"}, 0},
	} {
		candidates, tried := propose(axes(plan, c.given), c.predict, c.over)
		got, predicted := names(candidates)
		if !slices.Equal(got, c.want) || predicted != c.predicted || tried < predicted {
			t.Errorf("%s: %q, %d predicted of %d\nwant %q, %d", c.name, got, predicted, tried, c.want, c.predicted)
		}
	}
	if f := fewer(1); f != nil {
		t.Errorf("fewer than one thread: %v", f)
	}
}
