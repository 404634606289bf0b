package stagetest

import (
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// watch checks the pipeline's invariants from the messages that pass.
type watch struct {
	depth   int
	layers  map[ringID]int                  // begun and not retired
	waves   map[waveID]*stages.WaveResident // sent to dispatch and not home
	out     map[ringID]int                  // how many those are
	borders stages.Borders
	steps   map[stages.StepID]*watchedStep // begun and not drained
	drained map[stages.StepID]bool
	inUse   map[stages.SlotID]map[waveID]int // who has a slot
	filling map[stages.SlotID]bool           // is being read into
	// waves sent of a layer, of which wave 0 stands for all
	layer map[waveID]*watchedLayer
	// sequences for which a layer went on that had lost others
	spared int
	pages  watchedPages
	reads  watchedReads
	// requests of callers
	answers watchedAnswers
}

// ringID is a ring of waves: one of an order, on a part of the device.
type ringID struct{ order, part int }

func ringOf(b stages.Borders, s *stages.Step) ringID {
	return ringID{int(s.Batch.Order()), b.Part(s.Layer)}
}

type waveID struct {
	step        stages.StepID
	layer, wave int
}

// credits: of each part of the device, messages that began layers and whose layers are not retired
type watchedStep struct {
	begun, retired int
	credits        map[ringID]int
}

// watchedLayer is what was sent of a plan.
type watchedLayer struct {
	uses  []bool // [len(Plan.Uses)]
	waves int
	last  bool
}

func newWatch(c *Config) watch {
	return watch{
		depth: c.RingDepth, borders: c.Borders, layers: make(map[ringID]int), out: make(map[ringID]int), waves: make(map[waveID]*stages.WaveResident), steps: make(map[stages.StepID]*watchedStep),
		drained: make(map[stages.StepID]bool), inUse: make(map[stages.SlotID]map[waveID]int),
		filling: make(map[stages.SlotID]bool), layer: make(map[waveID]*watchedLayer),
		reads: newWatchedReads(c.Reads, c.Layers),
		pages: watchedPages{rows: c.PageRows, of: make(map[stages.StateID][]stages.PageID)}, answers: make(watchedAnswers),
	}
}

// sent checks a message between stages.
func (w *watch) sent(from stages.StageID, s stages.Send) error {
	switch m := s.Msg.(type) {
	case *stages.BeginLayer:
		if s.To == stages.Dispatch {
			if err := w.pages.begin(m); err != nil {
				return err
			}
			return w.beginLayer(m)
		}
	case *stages.CopyState:
		w.pages.copy(m)
	case *stages.DropState:
		delete(w.pages.of, m.State)
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
		st = &watchedStep{credits: make(map[ringID]int)}
		w.steps[m.ID] = st
	}
	if m.Layer != st.begun {
		return fmt.Errorf("%v begins, want layer %d", &m.Step, st.begun)
	}
	st.begun += 1 + m.More
	ring := ringOf(w.borders, &m.Step)
	if w.borders.Part(m.Layer+m.More) != ring.part {
		return fmt.Errorf("%v and the next %d layers begin together on two parts", &m.Step, m.More)
	}
	st.credits[ring]++
	w.layers[ring]++
	if n := w.layers[ring]; n > w.depth {
		return fmt.Errorf("%d layers, or layers that began together, are begun and not retired, the ring has a depth of %d", n, w.depth)
	}
	return nil
}

func (w *watch) waveResident(m *stages.WaveResident) error {
	id := waveID{m.ID, m.Layer, m.Wave}
	if w.waves[id] != nil {
		return fmt.Errorf("wave %d of %v is sent twice", m.Wave, &m.Step)
	}
	if err := w.part(m); err != nil {
		return err
	}
	if len(m.Slots) == 0 { // it only ends its layer
		return nil
	}
	w.waves[id] = m
	ring := ringOf(w.borders, &m.Step)
	w.out[ring]++
	if n := w.out[ring]; n > w.depth {
		return fmt.Errorf("%d waves are sent and not home, the ring has a depth of %d", n, w.depth)
	}
	for _, slot := range m.Slots {
		if w.filling[slot] {
			return fmt.Errorf("slot %d is in wave %d of %v while it is read into", slot, m.Wave, &m.Step)
		}
		if w.inUse[slot] == nil {
			w.inUse[slot] = make(map[waveID]int)
		}
		if w.inUse[slot][id]++; w.inUse[slot][id] > 1 {
			return fmt.Errorf("slot %d is twice in wave %d of %v", slot, m.Wave, &m.Step)
		}
	}
	return nil
}

// part checks that the waves of a layer are numbered, that each use of the plan is in one of them,
// and that the one that ends the uses, and no other, is the last.
func (w *watch) part(m *stages.WaveResident) error {
	id := waveID{m.ID, m.Layer, 0}
	l := w.layer[id]
	if l == nil {
		l = &watchedLayer{uses: make([]bool, len(m.Plan.Uses))}
		w.layer[id] = l
	}
	if len(m.Uses)+len(m.Answers) == 0 && len(m.Losses) == 0 || len(m.Slots) != len(m.Uses) || m.Wave != l.waves || l.last {
		return fmt.Errorf("wave %d of %v has uses %v in slots %v, after %d waves, ended: %v", m.Wave, &m.Step, m.Uses, m.Slots, l.waves, l.last)
	}
	for _, u := range usesOf(m) {
		if l.uses[u] {
			return fmt.Errorf("wave %d of %v has expert %d, which an earlier one had", m.Wave, &m.Step, m.Plan.Uses[u].Expert)
		}
		l.uses[u] = true
	}
	l.waves++
	whole := !slices.Contains(l.uses, false)
	if l.last = m.Last; whole != l.last && len(m.Losses) == 0 {
		return fmt.Errorf("wave %d of %v: last %v, but all uses are sent: %v", m.Wave, &m.Step, m.Last, whole)
	}
	return w.lost(m, l)
}

// usesOf returns the uses that are computed with a wave, here or by expert hosts.
func usesOf(m *stages.WaveResident) []int32 {
	all := slices.Clone(m.Uses)
	for _, a := range m.Answers {
		all = append(all, a.Use)
	}
	return all
}

// lost checks that what a layer leaves out is wanted only by those whom it has lost, and that
// somebody is left.
func (w *watch) lost(m *stages.WaveResident, l *watchedLayer) error {
	if len(m.Losses) >= len(m.Batch.Segments) || len(m.Losses) > 0 && !m.Last {
		return fmt.Errorf("wave %d of %v, last %v, tells of %d losses of %d sequences", m.Wave, &m.Step, m.Last, len(m.Losses), len(m.Batch.Segments))
	}
	if !m.Last {
		return nil
	}
	hit := make(map[stages.SeqID]bool) // who wants what is left out
	for u, sent := range l.uses {
		for _, pair := range m.Plan.Uses[u].Pairs {
			seq := m.Batch.Rows[int(pair)/m.Plan.TopK].Seq
			hit[seq] = hit[seq] || !sent
			if !sent && !slices.ContainsFunc(m.Losses, func(x stages.Loss) bool { return x.Seq == seq }) {
				return fmt.Errorf("%v ends without expert %d, which sequence %d wants", &m.Step, m.Plan.Uses[u].Expert, seq)
			}
		}
	}
	for _, x := range m.Losses {
		if x.Err.Stage == stages.ExpertIO && !hit[x.Seq] {
			return fmt.Errorf("%v has lost sequence %d, which wants nothing that was left out", &m.Step, x.Seq)
		}
	}
	if len(m.Losses) > 0 {
		w.spared += len(m.Batch.Segments) - len(m.Losses)
	}
	return nil
}

func (w *watch) slotsReleased(m *stages.SlotsReleased) error {
	id := waveID{m.ID, m.Layer, m.Wave}
	if w.waves[id] == nil {
		return fmt.Errorf("slots of wave %d of %v come home, but are not out", m.Wave, &m.Step)
	}
	delete(w.waves, id)
	w.out[ringOf(w.borders, &m.Step)]--
	for _, slot := range m.Slots {
		delete(w.inUse[slot], id)
	}
	return nil
}

// reading reports an error if a read into a slot begins while a wave has it, or another read.
func (w *watch) reading(slot stages.SlotID) error {
	for id := range w.inUse[slot] {
		return fmt.Errorf("slot %d is read into while wave %d of step %d layer %d has it", slot, id.wave, id.step, id.layer)
	}
	if w.filling[slot] {
		return fmt.Errorf("slot %d is read into twice at once", slot)
	}
	w.filling[slot] = true
	return nil
}

// read notes the end of a read.
func (w *watch) read(slot stages.SlotID) { delete(w.filling, slot) }

// freed reports an error if the memory of a slot is given back while a wave has it, or a read.
func (w *watch) freed(slot stages.SlotID) error {
	if len(w.inUse[slot]) > 0 || w.filling[slot] {
		return fmt.Errorf("slot %d is given back while %d waves have it, being read into: %v", slot, len(w.inUse[slot]), w.filling[slot])
	}
	return nil
}

// received checks what ends layers and steps, when the sequencer learns it.
func (w *watch) received(to stages.StageID, in stages.Message) error {
	w.reads.received(to, in)
	switch m := in.(type) {
	case *stages.LayerRetired:
		st := w.steps[m.ID]
		if st == nil || m.Layer != st.retired {
			return fmt.Errorf("%v is retired out of order", &m.Step)
		}
		st.retired += 1 + m.More
		ring := ringOf(w.borders, &m.Step)
		st.credits[ring]--
		w.layers[ring]--
	case *stages.StepDrained:
		st := w.steps[m.ID]
		if st == nil {
			return fmt.Errorf("%v is drained, but is not in flight", &m.Step)
		}
		for ring, n := range st.credits {
			w.layers[ring] -= n
		}
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
	for ring, n := range w.layers {
		if n != 0 {
			return fmt.Errorf("%d layers of %v were begun and never retired", n, ring)
		}
	}
	if len(w.filling) > 0 {
		return fmt.Errorf("%d reads never ended", len(w.filling))
	}
	for id, st := range w.steps {
		if st.begun != st.retired {
			return fmt.Errorf("step %d: %d layers begun, %d retired", id, st.begun, st.retired)
		}
	}
	return w.answers.atRest()
}
