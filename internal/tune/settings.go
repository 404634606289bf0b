package tune

import (
	"cmp"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/tuned"
	"github.com/moeflux/moeflux-actor/tracing/whatif"
)

// axis is the values of one setting that are tried.
type axis struct {
	values []tuned.Settings
	// replayed says that a replay knows the setting, so that those are measured of which it
	// promises something. unsure are measured in any case.
	replayed bool
	unsure   []tuned.Settings
}

// axes returns what may be tried in place of a plan's settings, but for what the user has given.
func axes(plan *actors.Info, given tuned.Settings) []axis {
	all := []axis{
		{[]tuned.Settings{{ReadWorkers: 1}, {ReadWorkers: 2}, {ReadWorkers: 4}, {ReadWorkers: 8}, {ReadWorkers: 16}}, true, workersBeside(plan.ReadWorkers)},
		{[]tuned.Settings{{Prefetch: "last-token"}, {Prefetch: "next-gate"}, {Prefetch: "both"}, {Prefetch: "off"}}, true, nil},
		{[]tuned.Settings{{RingDepth: 3}, {RingDepth: 4}, {RingDepth: 1}, {RingDepth: 2}}, true, nil},
		{fewer(plan.Threads), false, nil},
		{[]tuned.Settings{{PrefetchLayers: 1}, {PrefetchLayers: 2}}, false, nil},
	}
	var free []axis
	for _, a := range all {
		if len(a.values) > 0 && !overlap(a.values[0], given) {
			free = append(free, a)
		}
	}
	return free
}

// workersBeside returns far fewer and more readers than there are. How a disk takes more reads at
// once than were recorded, or fewer, a replay can but guess.
func workersBeside(workers int) []tuned.Settings {
	return []tuned.Settings{{ReadWorkers: max(1, workers/4)}, {ReadWorkers: 2 * workers}}
}

// fewer returns fewer threads than there are: one less, and half of them, since two threads of one
// core may be in each other's way.
func fewer(threads int) (all []tuned.Settings) {
	if threads > 1 {
		all = append(all, tuned.Settings{Threads: threads - 1})
	}
	if threads > 3 {
		all = append(all, tuned.Settings{Threads: threads / 2})
	}
	return all
}

// with returns the settings of s, and those of t in their place.
func with(s, t tuned.Settings) tuned.Settings {
	return tuned.Settings{
		RingDepth: cmp.Or(t.RingDepth, s.RingDepth), Prefetch: cmp.Or(t.Prefetch, s.Prefetch), PrefetchLayers: cmp.Or(t.PrefetchLayers, s.PrefetchLayers),
		ReadWorkers: cmp.Or(t.ReadWorkers, s.ReadWorkers), Threads: cmp.Or(t.Threads, s.Threads),
	}
}

// without returns s without the settings that t has.
func without(s, t tuned.Settings) tuned.Settings {
	return s.LeftOpen(&actors.Config{
		RingDepth: t.RingDepth, Prefetch: actors.Prefetch(t.Prefetch), PrefetchLayers: t.PrefetchLayers, ReadWorkers: t.ReadWorkers,
	}, t.Threads)
}

// overlap reports whether both set one setting.
func overlap(s, t tuned.Settings) bool { return without(s, t) != s }

// replayable returns the settings for a replay.
func replayable(s tuned.Settings) whatif.Settings {
	return whatif.Settings{RingDepth: s.RingDepth, Prefetch: s.Prefetch, ReadWorkers: s.ReadWorkers}
}
