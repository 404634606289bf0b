package whatif

import (
	"errors"
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Settings is what a replay can change. The zero value changes nothing.
type Settings struct {
	RingDepth    int     `json:"ring_depth,omitempty"`
	ExpertMemory int64   `json:"expert_memory,omitempty"` // bytes for expert slots
	Prefetch     string  `json:"prefetch,omitempty"`      // off, last-token, next-gate or both
	ReadWorkers  int     `json:"read_workers,omitempty"`
	ChunkRows    int     `json:"chunk_rows,omitempty"`
	DiskRate     float64 `json:"disk_bytes_per_s,omitempty"` // of another disk, however many read
	Policy       string  `json:"policy,omitempty"`           // lru: the least recently used expert leaves
}

// UnknownError reports a question that the recording cannot answer; without a What, any question.
type UnknownError struct{ What, Why string }

func (e *UnknownError) Error() string {
	if e.What == "" {
		return "nothing can be predicted: " + e.Why
	}
	return fmt.Sprintf("%s cannot be predicted: %s", e.What, e.Why)
}

// Validate reports settings that no engine takes. What the recording cannot answer is no error
// here.
func (s *Settings) Validate(r *record.Recording) error {
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
	switch s.Prefetch {
	case "", "off", "last-token", "next-gate", "both":
	default:
		bad(true, "the predictor is %q, but must be off, last-token, next-gate or both", s.Prefetch)
	}
	e := setup{Engine: r.Meta.Engine}
	if s.ExpertMemory > 0 {
		errs = append(errs, e.memory(s.ExpertMemory, &r.Meta.Model))
	}
	return errors.Join(errs...)
}

// setup is the engine of a replay: the recorded one with changes.
type setup struct {
	record.Engine
	policy string
	rate   float64
}

// slotAlign is that of the engine's slots.
const slotAlign = 4096

// apply returns the engine that the settings make of the recorded one.
func (s *Settings) apply(r *record.Recording) (e setup, err error) {
	e.Engine = r.Meta.Engine
	if err := s.Validate(r); err != nil {
		return e, err
	}
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
		if err := e.memory(s.ExpertMemory, &r.Meta.Model); err != nil {
			return e, err
		}
	}
	if s.Policy != "" && len(e.SlotParts) > 1 {
		return e, &UnknownError{What: "--policy " + s.Policy, Why: "the recorded run had slots on several devices, each with a policy of its own"}
	}
	e.policy, e.rate = s.Policy, s.DiskRate
	return e, e.predictor(s.Prefetch)
}

// predictor sets the predictor of speculative reads.
func (e *setup) predictor(name string) error {
	if name == "" {
		return nil
	}
	next := name == "next-gate" || name == "both"
	switch {
	case next && !e.NextGate && e.ScoresAhead < e.Ahead:
		return &UnknownError{What: "--prefetch " + name,
			Why: "the recorded run did not apply the routers of later layers; record one with --prefetch next-gate or both"}
	case !next && e.NextGate:
		e.ScoresAhead, e.ScoresAheadRows = 0, 0
	}
	e.LastToken, e.NextGate = name == "last-token" || name == "both", next
	return nil
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
	auto := e.WaveSlots == waves(e.fewest())
	e.divide(slots, all, m)
	if slots = e.fewest(); auto {
		e.WaveSlots = waves(slots)
	}
	if slots < max(1, e.WaveSlots) {
		return fmt.Errorf("%d bytes hold %d experts, and a wave has %d", bytes, slots, e.WaveSlots)
	}
	return nil
}

// fewest returns how many slots there are on the device that has the fewest of those with experts.
func (e *setup) fewest() int {
	few := e.Slots
	for _, n := range e.SlotParts {
		if n > 0 {
			few = min(few, n)
		}
	}
	return few
}

// divide sets the number of slots. Several devices have a share of them by their experts, of which
// there are so many in all.
func (e *setup) divide(slots, all int, m *record.Model) {
	e.Slots = slots
	if len(e.SlotParts) == 0 {
		return
	}
	experts := make([]int, len(e.SlotParts))
	for layer, is := range m.Routed {
		if is {
			experts[stages.Borders(e.Borders).Part(layer)] += m.Experts
		}
	}
	e.Slots, e.SlotParts = 0, make([]int, len(experts))
	for i, n := range experts {
		e.SlotParts[i] = min((slots*n+all-1)/all, n)
		e.Slots += e.SlotParts[i]
	}
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
