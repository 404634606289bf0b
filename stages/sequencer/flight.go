package sequencer

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// flight is the steps in the pipeline.
type flight struct {
	lanes []*step // nil is free
	// the lane whose next layer is considered first, of steps of each kind: these take turns
	turns [schedule.Kinds]int
	last  stages.StepID
	ring  [][schedule.Kinds]int // [parts of the device]: layers begun and not retired
}

// step is one step in the pipeline.
type step struct {
	head      stages.Step // Layer is left at 0
	reqs      []*request  // [len(Batch.Segments)]
	kind      schedule.Kind
	begun     int // layers
	submitted int
	retired   int
	credits   []int // [parts]: of the ring, held by layers begun and not retired
	asked     bool  // ReadLogits is sent, or nobody wants anything of it
	logits    *stages.LogitsReady
	failing   error
	// the failure is no single request's fault, and what the step has done can be taken back
	retry     bool
	untouched bool // it has done nothing
	stand     stand
}

// empty reports whether no step is left.
func (f *flight) empty() bool {
	for _, s := range f.lanes {
		if s != nil {
			return false
		}
	}
	return true
}

// free frees a step's lane.
func (f *flight) free(s *step) { f.lanes[s.head.Batch.Lane] = nil }

// next returns a step of a kind whose next layers may begin, and how many: the layer before is with
// the device, and may agrees to one at least. Steps take turns. Of a device of several parts the
// oldest step goes first: so it comes to the next part soon, while the one after it is with this
// one. Steps that took turns would all be with the same part.
func (f *flight) next(kind schedule.Kind, layers int, may func(*step) int) (*step, int) {
	if len(f.ring) > 1 {
		return f.oldest(kind, layers, may)
	}
	for i := range f.lanes {
		lane := (f.turns[kind] + i) % len(f.lanes)
		s := f.lanes[lane]
		if s == nil || s.kind != kind || !s.waits(layers) {
			continue
		}
		if n := may(s); n > 0 {
			f.turns[kind] = lane + 1
			return s, n
		}
	}
	return nil, 0
}

// waits reports whether nothing of a step keeps its next layers from beginning.
func (s *step) waits(layers int) bool {
	return s.failing == nil && s.begun < layers && s.begun <= s.submitted
}

// oldest is next where the oldest step goes first.
func (f *flight) oldest(kind schedule.Kind, layers int, may func(*step) int) (*step, int) {
	last := stages.StepID(0)
	for {
		var s *step
		for _, o := range f.lanes {
			if o != nil && o.kind == kind && o.waits(layers) && o.head.ID > last && (s == nil || o.head.ID < s.head.ID) {
				s = o
			}
		}
		if s == nil {
			return nil, 0
		}
		if n := may(s); n > 0 {
			return s, n
		}
		last = s.head.ID
	}
}

// find returns the step that a message belongs to.
func (f *flight) find(h *stages.Step) (*step, error) {
	if h.Batch != nil && h.Batch.Lane >= 0 && h.Batch.Lane < len(f.lanes) {
		if s := f.lanes[h.Batch.Lane]; s != nil && s.head.ID == h.ID {
			return s, nil
		}
	}
	return nil, fmt.Errorf("sequencer: message for %v, which is not in flight", h)
}

// late forgives what dispatch tells of a step that has ended: StepDrained comes by way of combine
// and may overtake it.
func (f *flight) late(h *stages.Step, err error) error {
	if h.ID <= f.last {
		return nil
	}
	return err
}

// wants reports whether the end of the step must be read back.
func (s *step) wants() bool {
	b := s.head.Batch
	if len(b.Wants) > 0 {
		return true
	}
	for i := range b.Rows {
		if b.Rows[i].Logits {
			return true
		}
	}
	return false
}

// forsaken reports whether nobody wants the step any more.
func (s *step) forsaken() bool {
	for _, r := range s.reqs {
		if r.cancel == nil && r.lost == nil {
			return false
		}
	}
	return true
}
