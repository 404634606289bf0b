package stagetest

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// watch checks the pipeline's invariants from the messages that pass.
type watch struct {
	depth   int
	layers  int                             // begun and not retired
	waves   map[waveID]*stages.WaveResident // sent to dispatch and not home
	steps   map[stages.StepID]*watchedStep  // begun and not drained
	drained map[stages.StepID]bool
	inUse   map[stages.SlotID]map[waveID]int // who has a slot
}

type waveID struct {
	step        stages.StepID
	layer, wave int
}

type watchedStep struct{ begun, retired int }

func newWatch(depth int) watch {
	return watch{
		depth: depth, waves: make(map[waveID]*stages.WaveResident), steps: make(map[stages.StepID]*watchedStep),
		drained: make(map[stages.StepID]bool), inUse: make(map[stages.SlotID]map[waveID]int),
	}
}

// sent checks a message between stages.
func (w *watch) sent(from stages.StageID, s stages.Send) error {
	switch m := s.Msg.(type) {
	case *stages.BeginLayer:
		if s.To == stages.Dispatch {
			return w.beginLayer(m)
		}
	case *stages.WaveResident:
		return w.waveResident(m)
	case *stages.SlotsReleased:
		return w.slotsReleased(m)
	}
	return nil
}

func (w *watch) beginLayer(m *stages.BeginLayer) error {
	st := w.steps[m.ID]
	if st == nil {
		if w.drained[m.ID] {
			return fmt.Errorf("%v begins after its end", &m.Step)
		}
		st = new(watchedStep)
		w.steps[m.ID] = st
	}
	if m.Layer != st.begun {
		return fmt.Errorf("%v begins, want layer %d", &m.Step, st.begun)
	}
	st.begun++
	w.layers++
	if w.layers > w.depth {
		return fmt.Errorf("%d layers are begun and not retired, the ring has a depth of %d", w.layers, w.depth)
	}
	return nil
}

func (w *watch) waveResident(m *stages.WaveResident) error {
	id := waveID{m.ID, m.Layer, m.Wave}
	if w.waves[id] != nil {
		return fmt.Errorf("wave %d of %v is sent twice", m.Wave, &m.Step)
	}
	if len(m.Slots) != len(m.Plan.Waves[m.Wave].Uses) {
		return fmt.Errorf("wave %d of %v has %d slots for %d experts", m.Wave, &m.Step, len(m.Slots), len(m.Plan.Waves[m.Wave].Uses))
	}
	w.waves[id] = m
	if len(w.waves) > w.depth {
		return fmt.Errorf("%d waves are sent and not home, the ring has a depth of %d", len(w.waves), w.depth)
	}
	for _, slot := range m.Slots {
		if w.inUse[slot] == nil {
			w.inUse[slot] = make(map[waveID]int)
		}
		if w.inUse[slot][id]++; w.inUse[slot][id] > 1 {
			return fmt.Errorf("slot %d is twice in wave %d of %v", slot, m.Wave, &m.Step)
		}
	}
	return nil
}

func (w *watch) slotsReleased(m *stages.SlotsReleased) error {
	id := waveID{m.ID, m.Layer, m.Wave}
	if w.waves[id] == nil {
		return fmt.Errorf("slots of wave %d of %v come home, but are not out", m.Wave, &m.Step)
	}
	delete(w.waves, id)
	for _, slot := range m.Slots {
		delete(w.inUse[slot], id)
	}
	return nil
}

// reading reports an error if a read into a slot begins while a wave has it.
func (w *watch) reading(slot stages.SlotID) error {
	for id := range w.inUse[slot] {
		return fmt.Errorf("slot %d is read into while wave %d of step %d layer %d has it", slot, id.wave, id.step, id.layer)
	}
	return nil
}

// received checks what ends layers and steps, when the sequencer learns it.
func (w *watch) received(to stages.StageID, in stages.Message) error {
	switch m := in.(type) {
	case *stages.LayerRetired:
		st := w.steps[m.ID]
		if st == nil || m.Layer != st.retired {
			return fmt.Errorf("%v is retired out of order", &m.Step)
		}
		st.retired++
		w.layers--
	case *stages.StepDrained:
		st := w.steps[m.ID]
		if st == nil {
			return fmt.Errorf("%v is drained, but is not in flight", &m.Step)
		}
		w.layers -= st.begun - st.retired
		delete(w.steps, m.ID)
		w.drained[m.ID] = true
	}
	return nil
}

// atRest reports what is still out.
func (w *watch) atRest() error {
	if len(w.waves) > 0 {
		return fmt.Errorf("%d waves never came home", len(w.waves))
	}
	if w.layers != 0 {
		return fmt.Errorf("%d layers were begun and never retired", w.layers)
	}
	for id, st := range w.steps {
		if st.begun != st.retired {
			return fmt.Errorf("step %d: %d layers begun, %d retired", id, st.begun, st.retired)
		}
	}
	return nil
}
