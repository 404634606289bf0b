package stagetest

import (
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// standstills checks the records of waiting that a message has ended, and that none is missing: a
// layer's uses have their slots at once, or its waits for room and credits to read follow one on
// the other until the last has one; and a last wave goes as soon as its experts are in memory, or
// has waited for a place in the ring ever since.
func (w *watchedRecords) standstills(m stages.Message, out *stages.Outbox) error {
	credit := make(map[waveID]record.Wait)
	for _, r := range w.fresh.waits {
		id := waveID{stages.StepID(r.Step), int(r.Layer), 0}
		l := w.loads[id]
		if l == nil || r.BeganNS >= r.EndedNS || r.EndedNS != out.NowNS || r.Request != 0 {
			return fmt.Errorf("%+v is recorded at %d, of a layer that is routed: %v", r, out.NowNS, l != nil)
		}
		switch r.Reason {
		case record.Room, record.ReadCredit:
			if r.Wave != -1 || r.BeganNS != l.waitedNS && !l.away {
				return fmt.Errorf("%+v does not follow what was waited until %d", r, l.waitedNS)
			}
			l.waits++
			l.waitedNS = r.EndedNS
		case record.WaveCredit:
			if r.For != 0 && !w.only(stages.StepID(r.For)) {
				return fmt.Errorf("%+v, while the steps %v have waves out", r, w.before)
			}
			id.wave = int(r.Wave)
			credit[id] = r
		default:
			return fmt.Errorf("expert-IO records %+v", r)
		}
	}
	switch m := m.(type) {
	case *stages.ExpertsRead:
		for _, r := range m.Results {
			if r.Err != nil {
				w.lost(r.Slot)
			}
		}
	case *stages.ReadOverdue:
		w.lost(m.Slot)
	}
	for _, s := range out.Sends {
		if wave, ok := s.Msg.(*stages.WaveResident); ok {
			if err := w.wave(wave, credit, out.NowNS); err != nil {
				return err
			}
		}
	}
	for id, l := range w.loads {
		if len(l.given) == len(l.uses) && l.waitedNS >= 0 && !l.away {
			if l.waits > 0 && l.waitedNS != out.NowNS || l.waits == 0 && l.routedNS != out.NowNS {
				return fmt.Errorf("step %d layer %d: routed at %d, the last use has its slot at %d, %d waits are recorded until %d", id.step, id.layer, l.routedNS, out.NowNS, l.waits, l.waitedNS)
			}
			l.waitedNS = -1
		}
	}
	if drain, ok := m.(*stages.DrainStep); ok {
		for id := range w.loads {
			if id.step == drain.ID {
				delete(w.loads, id)
			}
		}
	}
	return nil
}

// only reports whether the waves that were out before the present message were all of one step, of
// one ring.
func (w *watchedRecords) only(step stages.StepID) bool {
	for _, ring := range w.before {
		if len(ring) > 0 && !slices.ContainsFunc(ring, func(id stages.StepID) bool { return id != step }) {
			return true
		}
	}
	return false
}

// lost notes that what waits for a read that has failed is given up, or handed over to hosts.
func (w *watchedRecords) lost(slot stages.SlotID) {
	for _, l := range w.loads {
		for _, u := range l.given {
			if u.slot == int32(slot) && !u.ready {
				l.lost, u.lost = true, true
			}
		}
	}
}

// wave checks a wave that is sent.
func (w *watchedRecords) wave(m *stages.WaveResident, credit map[waveID]record.Wait, now int64) error {
	l := w.loads[waveID{m.ID, m.Layer, 0}]
	if l == nil {
		return fmt.Errorf("wave %d of %v is sent, which is not routed", m.Wave, &m.Step)
	}
	due := l.sentNS
	for i, use := range m.Uses {
		u := l.given[m.Plan.Uses[use].Expert]
		if u == nil || !u.ready || u.slot >= 0 && u.slot != int32(m.Slots[i]) {
			return fmt.Errorf("wave %d of %v has expert %d in slot %d, recorded is %+v", m.Wave, &m.Step, m.Plan.Uses[use].Expert, m.Slots[i], u)
		}
		due = max(due, u.readyNS)
	}
	for _, a := range m.Answers {
		u := l.given[m.Plan.Uses[a.Use].Expert]
		if u == nil || u.slot != -1 && !u.lost {
			return fmt.Errorf("wave %d of %v has expert %d from a host, recorded is %+v", m.Wave, &m.Step, m.Plan.Uses[a.Use].Expert, u)
		}
		due = max(due, u.readyNS)
	}
	waited, ok := credit[waveID{m.ID, m.Layer, m.Wave}]
	if m.Last && !l.lost && len(m.Losses) == 0 && due < now && (!ok || waited.BeganNS > due) {
		return fmt.Errorf("the last wave of %v is sent at %d, its experts were there at %d, and recorded is %+v", &m.Step, now, due, waited)
	}
	l.sentNS = now
	if len(m.Slots) > 0 {
		ring := ringOf(w.borders, &m.Step)
		w.ring[ring] = append(w.ring[ring], m.ID)
	}
	if m.Last {
		delete(w.loads, waveID{m.ID, m.Layer, 0})
	}
	return nil
}
