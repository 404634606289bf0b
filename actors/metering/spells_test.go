package metering

import (
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// TestSpells holds that each message that may end a step says how long the device and the disk have
// held it up until now, once, and others say nothing: what is told later would be nobody's.
func TestSpells(t *testing.T) {
	var clock int64
	m := New(2, func() int64 { return clock }, new(record.Log))
	dev := &watchedQueue{}
	q := m.Measured(dev, 1)
	submit := func(id stages.StepID, layer int) {
		t.Helper()
		m.Before(stages.Dispatch, &stages.BeginLayer{Step: stages.Step{ID: id, Layer: layer}})
		if _, err := q.Submit(new(gpu.Commands)); err != nil {
			t.Fatal(err)
		}
		dev.watch(gpu.Progress{Working: true})
	}
	told := func(name string, in stages.Message, got *stages.Spell, want stages.Spell) {
		t.Helper()
		if m.Before(stages.Sequencer, in); *got != want {
			t.Errorf("%s: %+v, want %+v", name, *got, want)
		}
	}

	submit(1, 0)
	clock += 10
	dev.watch(gpu.Progress{})
	m.After(stages.ExpertIO, &stages.LayerRouted{Step: stages.Step{ID: 1}}, &stages.Outbox{Reads: []stages.ReadGroup{{Reads: make([]stages.Read, 1)}}})
	clock += 7 // the device waits for the disk
	first := &stages.LayerRetired{Step: stages.Step{ID: 1}}
	told("a layer before the last", first, &first.Spell, stages.Spell{})
	last := &stages.LayerRetired{Step: stages.Step{ID: 1, Layer: 1}}
	told("the last layer", last, &last.Spell, stages.Spell{DeviceNS: 10, DiskWaitNS: 7})
	submit(1, 2)
	clock += 20
	head := &stages.LogitsReady{Step: stages.Step{ID: 1, Layer: 2}}
	told("the head, while the device works", head, &head.Spell, stages.Spell{DeviceNS: 20})
	told("the head again", head, &head.Spell, stages.Spell{})
	clock += 3
	dev.watch(gpu.Progress{})

	submit(2, 0)
	clock += 5
	dev.watch(gpu.Progress{})
	together := &stages.LayerRetired{Step: stages.Step{ID: 2}, More: 1}
	told("all layers together", together, &together.Spell, stages.Spell{DeviceNS: 5})
	submit(2, 0)
	clock += 6
	drained := &stages.StepDrained{Step: stages.Step{ID: 2}}
	told("the end of a step that failed", drained, &drained.Spell, stages.Spell{DeviceNS: 6})

	var s stages.Stats
	if m.Report(&s); s.Accounts.Nobody != (stages.Cost{DeviceNS: 3}) {
		t.Errorf("nobody has %+v, want the 3 ns of the device after the end of step 1", s.Accounts.Nobody)
	}
}
