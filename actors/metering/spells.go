package metering

import "github.com/moeflux/moeflux-actor/stages"

// mostSteps is more than the steps that can be in flight at once.
const mostSteps = 64

// spells is how long the device and the disk held up each step since the sequencer was last told.
type spells struct {
	steps  [mostSteps]spell // by number, modulo mostSteps
	nobody stages.Spell     // of no step, or of one that ended long ago
}

type spell struct {
	step stages.StepID
	stages.Spell
}

// of returns the spell of a step.
func (s *spells) of(step stages.StepID) *stages.Spell {
	e := &s.steps[step%mostSteps]
	if step == 0 || step < e.step {
		return &s.nobody
	}
	if step > e.step {
		s.nobody.DeviceNS += e.DeviceNS
		s.nobody.DiskWaitNS += e.DiskWaitNS
		*e = spell{step: step}
	}
	return &e.Spell
}

// take returns the spell of a step, which begins anew.
func (s *spells) take(step stages.StepID) (t stages.Spell) {
	if e := &s.steps[step%mostSteps]; e.step == step {
		t, e.Spell = e.Spell, t
	}
	return t
}

// report adds what the sequencer was not told of.
func (s *spells) report(to *stages.Cost) {
	add := func(t stages.Spell) {
		to.DeviceNS += t.DeviceNS
		to.DiskWaitNS += t.DiskWaitNS
	}
	add(s.nobody)
	for i := range s.steps {
		add(s.steps[i].Spell)
	}
}

// tell writes the spell of a step into a message that may end it.
func (m *Meter) tell(in stages.Message) {
	switch in := in.(type) {
	case *stages.LogitsReady:
		in.Spell = m.take(in.ID)
	case *stages.StepDrained:
		in.Spell = m.take(in.ID)
	case *stages.LayerRetired:
		if in.Layer+in.More+2 == len(m.layers) { // the last one
			in.Spell = m.take(in.ID)
		}
	}
}

func (m *Meter) take(step stages.StepID) stages.Spell {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count()
	return m.spells.take(step)
}
