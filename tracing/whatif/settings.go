package whatif

import (
	"errors"
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Settings is what a replay can change. The zero value changes nothing.
type Settings struct {
	RingDepth    int
	ExpertMemory int64  // bytes for expert slots
	Prefetch     string // off, last-token, next-gate or both
	ReadWorkers  int
	ChunkRows    int
	DiskRate     float64 // bytes a second of a disk that many read
	Policy       string  // lru: the least recently used expert leaves
}

// UnknownError reports a question that the recording cannot answer.
type UnknownError struct{ What, Why string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s cannot be predicted: %s", e.What, e.Why)
}

// setup is the engine of a replay: the recorded one with changes.
type setup struct {
	record.Engine
	policy string
	rate   float64
}

// slotAlign is that of the engine's slots.
const slotAlign = 4096

// apply returns the engine that the settings make of the recorded one. unknown names what cannot be
// known of it.
func (s *Settings) apply(r *record.Recording) (e setup, err error) {
	e.Engine = r.Meta.Engine
	var errs []error
	bad := func(cond bool, format string, args ...any) {
		if cond {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(s.RingDepth < 0 || s.RingDepth > 64, "the ring depth is %d, but must be 1 to 64", s.RingDepth)
	bad(s.ReadWorkers < 0 || s.ReadWorkers > 1024, "there are %d read workers, but must be 1 to 1024", s.ReadWorkers)
	bad(s.ChunkRows < 0 || s.ChunkRows > 65536, "a step has %d rows, but must have 1 to 65536", s.ChunkRows)
	bad(s.DiskRate < 0, "the disk reads %g bytes a second", s.DiskRate)
	bad(s.Policy != "" && s.Policy != "lru", "the policy is %q, but must be lru", s.Policy)
	bad(s.ExpertMemory < 0, "the memory for experts is %d bytes", s.ExpertMemory)
	if s.RingDepth > 0 {
		e.RingDepth = s.RingDepth
	}
	if s.ReadWorkers > 0 {
		if e.QueuedReads > 0 && e.ReadWorkers > 0 {
			e.QueuedReads = e.QueuedReads / e.ReadWorkers * s.ReadWorkers
		}
		e.ReadWorkers = s.ReadWorkers
	}
	if s.ChunkRows > 0 {
		e.ChunkRows = s.ChunkRows
	}
	if s.ExpertMemory > 0 {
		errs = append(errs, e.memory(s.ExpertMemory, &r.Meta.Model))
	}
	switch s.Prefetch {
	case "":
	case "off", "last-token", "next-gate", "both":
		e.LastToken = s.Prefetch == "last-token" || s.Prefetch == "both"
		next := s.Prefetch == "next-gate" || s.Prefetch == "both"
		switch {
		case next && !e.NextGate && e.ScoresAhead < e.Ahead:
			errs = append(errs, &UnknownError{What: "--prefetch " + s.Prefetch,
				Why: "the recorded run did not apply the routers of later layers; record one with --prefetch next-gate or both"})
		case !next && e.NextGate:
			e.ScoresAhead, e.ScoresAheadRows = 0, 0
		}
		e.NextGate = next
	default:
		bad(true, "the predictor is %q, but must be off, last-token, next-gate or both", s.Prefetch)
	}
	e.policy, e.rate = s.Policy, s.DiskRate
	return e, errors.Join(errs...)
}

// memory sizes slots and waves as the engine does.
func (e *setup) memory(bytes int64, m *record.Model) error {
	routed := 0
	for _, is := range m.Routed {
		if is {
			routed++
		}
	}
	stride := (m.SlotBytes + slotAlign - 1) / slotAlign * slotAlign
	all := routed * m.Experts
	slots := int(min(bytes/max(1, stride), int64(all)))
	waves := func(slots int) int { return min(64, m.Experts, max(1, slots/2)) }
	if e.WaveSlots == waves(e.Slots) {
		e.WaveSlots = waves(slots)
	}
	e.Slots = slots
	if slots < max(1, e.WaveSlots) {
		return fmt.Errorf("%d bytes hold %d experts, and a wave has %d", bytes, slots, e.WaveSlots)
	}
	return nil
}

// String names what is changed, as flags.
func (s Settings) String() string {
	var f []string
	add := func(cond bool, format string, v any) {
		if cond {
			f = append(f, fmt.Sprintf(format, v))
		}
	}
	add(s.RingDepth > 0, "--ring-depth %d", s.RingDepth)
	add(s.ExpertMemory > 0, "--expert-memory %d", s.ExpertMemory)
	add(s.Prefetch != "", "--prefetch %s", s.Prefetch)
	add(s.ReadWorkers > 0, "--read-workers %d", s.ReadWorkers)
	add(s.ChunkRows > 0, "--chunk-rows %d", s.ChunkRows)
	add(s.DiskRate > 0, "--disk %.3gGB/s", s.DiskRate/1e9)
	add(s.Policy != "", "--policy %s", s.Policy)
	if len(f) == 0 {
		return "as recorded"
	}
	return strings.Join(f, " ")
}
