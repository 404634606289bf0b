package metering

import (
	"slices"
	"sync"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Meter measures where time goes (stages.Times). Cores have no clock. The shells tell the meter
// what expert-IO waits for and which reads are under way; the device's queue tells it when the
// device works. Nothing changes between two such notes, so all the time between them belongs to one
// account: the parts of a device (gpu.Split) have an account each, so that together they may work
// longer than the time that passed. A note reads the clock once and allocates nothing after the
// lists have grown.
//
// It also writes a record of each submission that the device has worked on, if the queue says when
// it works.
//
// The queue's goroutine and the goroutine that runs the line both use the meter, hence the lock.
type Meter struct {
	now func() int64 // the engine's clock
	log *record.Log  // of which the meter writes Submissions

	submitting work // that dispatch is about to submit; only the line uses it
	watched    bool // the queue says when the device works; otherwise only reads are timed

	mu      sync.Mutex // guards the rest
	until   int64      // all time before this is counted
	devices []device   // the parts of the device; none until its queue is Measured
	reads   int        // under way
	waits   []wait     // steps that lack experts of a routed layer, the longest wait first
	readNS  int64
	starved int64          // of DiskWaitNS, since the device last worked
	layers  []stages.Times // [layers+1]; the last is for the head and for work of no layer
	spells  spells
}

// wait is a step that waits for experts of a layer.
type wait struct {
	step  stages.StepID
	layer int
}

// New returns the meter of a model with a number of layers. now reads the engine's clock, in
// nanoseconds. Nobody else writes the log's Submissions.
func New(layers int, now func() int64, log *record.Log) *Meter {
	return &Meter{now: now, log: log, submitting: work{layer: int32(layers), wave: -1}, layers: make([]stages.Times, layers+1)}
}

// count adds the time since the last note to its account. The caller holds m.mu.
func (m *Meter) count() {
	now := m.now()
	d := now - m.until
	m.until = now
	if m.reads > 0 {
		m.readNS += d
	}
	if !m.watched {
		return
	}
	working := false
	for i := range m.devices {
		at := m.devices[i].working()
		if at == nil {
			continue
		}
		working = true
		t := &m.layers[at.layer]
		t.ComputeNS += d
		m.spells.of(at.step).DeviceNS += d
		if m.reads > 0 {
			t.OverlapNS += d
			at.overlapNS += d
		}
	}
	if !working && len(m.waits) > 0 {
		m.layers[m.waits[0].layer].DiskWaitNS += d
		m.starved += d
		m.spells.of(m.waits[0].step).DiskWaitNS += d
	}
}

// Before notes the work that dispatch is about to submit, and tells the sequencer how long a step
// has taken.
func (m *Meter) Before(id stages.StageID, in stages.Message) {
	switch id {
	case stages.Sequencer:
		m.tell(in)
	case stages.Dispatch:
		m.submitting = m.workOf(in)
	}
}

// After notes what a stage made of a message. The outbox must still be full.
func (m *Meter) After(id stages.StageID, in stages.Message, out *stages.Outbox) {
	switch id {
	case stages.Combine:
		if in, ok := in.(*stages.CollectStats); ok {
			m.Report(in.Stats)
		}
	case stages.ExpertIO:
		switch in := in.(type) {
		case *stages.LayerRouted:
			m.experts(0, in, 0, out)
		case *stages.ExpertsRead:
			m.experts(len(in.Results), nil, 0, out)
		case *stages.DrainStep:
			m.experts(0, nil, in.ID, out)
		default:
			m.experts(0, nil, 0, out)
		}
	}
}

// experts notes what expert-IO did: the number of reads that ended, the layer that was routed, and
// the step that was given up, if any. The outbox holds new reads and the layers that have all
// experts.
func (m *Meter) experts(ended int, routed *stages.LayerRouted, gone stages.StepID, out *stages.Outbox) {
	if ended == 0 && routed == nil && gone == 0 && len(out.Reads) == 0 && len(out.Sends) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count()
	m.reads -= ended
	for i := range out.Reads {
		m.reads += len(out.Reads[i].Reads)
	}
	if routed != nil {
		m.waits = append(m.waits, wait{routed.ID, m.index(routed.Layer)})
	}
	for _, s := range out.Sends {
		if w, ok := s.Msg.(*stages.WaveResident); ok && w.Last {
			m.served(w.ID)
		}
	}
	if gone != 0 {
		m.served(gone)
	}
}

// served removes a step that no longer waits. The caller holds m.mu.
func (m *Meter) served(step stages.StepID) {
	m.waits = slices.DeleteFunc(m.waits, func(w wait) bool { return w.step == step })
}

// index returns the index of a layer's account.
func (m *Meter) index(layer int) int {
	if layer < 0 || layer >= len(m.layers) {
		return len(m.layers) - 1
	}
	return layer
}

// Of returns the times until now of a layer and of the next more layers.
func (m *Meter) Of(layer, more int) (t stages.Times) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count()
	for i := range 1 + more {
		t.Add(m.layers[m.index(layer+i)])
	}
	return t
}

// Report writes the times until now into s.
func (m *Meter) Report(s *stages.Stats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count()
	s.Times = stages.Times{ReadNS: m.readNS}
	m.spells.report(&s.Accounts.Nobody)
	for i, t := range m.layers {
		s.Times.Add(t)
		if i < len(s.Layers) {
			s.Layers[i].Times = t
		}
	}
}
