package stagetest

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// watchedCosts counts what the pipeline costs at its source: reads as they end, and times as they
// are told.
type watchedCosts struct {
	bytes  int64 // of a record; 0 if nothing is to be watched
	layers int   // with experts
	stages.Cost
	told   int64       // spells so far
	routed stages.Cost // of what the device has routed by itself
}

// sent counts what dispatch tells of steps that the device has routed: each pick finds its expert
// in memory, and each expert of a layer is read there once.
func (w *watchedCosts) sent(m stages.Message) {
	routed, ok := m.(*stages.StepRouted)
	if !ok || w.bytes == 0 {
		return
	}
	n := len(routed.Picks) / w.layers
	for layer := range w.layers {
		experts := make(map[int32]bool)
		for _, e := range routed.Picks[layer*n:][:n] {
			if e >= 0 {
				w.routed.Hit++
				experts[e] = true
			}
		}
		w.routed.SlotBytes += int64(len(experts)) * w.bytes
	}
}

// received counts what a message brings, and puts times into those that bring them in an engine.
func (w *watchedCosts) received(to stages.StageID, m stages.Message) {
	switch m := m.(type) {
	case *stages.ExpertsRead:
		for _, r := range m.Results {
			switch {
			case r.Err != nil:
			case r.FromHost:
				w.HostBytes += w.bytes
			default:
				w.DiskBytes += w.bytes
			}
		}
	case *stages.LogitsReady:
		w.tell(&m.Spell)
	case *stages.LayerRetired:
		w.tell(&m.Spell)
	case *stages.StepDrained:
		w.tell(&m.Spell)
	}
}

// tell makes up how long a step has taken, in numbers that no number of rows divides.
func (w *watchedCosts) tell(s *stages.Spell) {
	w.told++
	*s = stages.Spell{DeviceNS: 10007 * w.told % 997, DiskWaitNS: 7919 * w.told % 1009}
	w.DeviceNS += s.DeviceNS
	w.DiskWaitNS += s.DiskWaitNS
}

// check compares the accounts of requests, and that of nobody, with what was counted.
func (w *watchedCosts) check(cores *[stages.NumStages]stages.Core) error {
	if w.bytes == 0 {
		return nil
	}
	requests, late := cores[stages.Sequencer].(interface {
		Accounts() (stages.Account, stages.Cost)
	}).Accounts()
	total, nobody := cores[stages.ExpertIO].(interface {
		Costs() (total, nobody stages.Cost)
	}).Costs()
	sum := requests.Cost
	sum.Add(&nobody)
	sum.Add(&late)
	want := w.Cost
	want.Hit, want.Late, want.Missed = total.Hit, total.Late, total.Missed
	want.SlotBytes, want.AheadBytes = total.SlotBytes, total.AheadBytes
	want.Add(&w.routed)
	if sum != want {
		return fmt.Errorf("requests have cost %+v, nobody %+v and %+v, together %+v, want %+v", requests.Cost, nobody, late, sum, want)
	}
	if total.HostBytes != w.HostBytes || total.DiskBytes != w.DiskBytes {
		return fmt.Errorf("expert-IO counts %d bytes of the host and %d of the disk, %d and %d were read", total.HostBytes, total.DiskBytes, w.HostBytes, w.DiskBytes)
	}
	if nobody.HostBytes < 0 || nobody.DiskBytes < 0 || nobody.AheadBytes < 0 || nobody.AheadBytes > nobody.HostBytes+nobody.DiskBytes {
		return fmt.Errorf("nobody has %+v", nobody)
	}
	return nil
}
