package metering

import (
	"slices"
	"sync"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
)

// Meter measures where time goes (stages.Times). Cores have no clock. The shells tell the meter
// what expert-IO waits for and which reads are under way; the device's queue tells it when the
// device works. Nothing changes between two such notes, so all the time between them belongs to one
// account. A note reads the clock once and allocates nothing after the lists have grown.
//
// The queue's goroutine and the goroutine that runs the line both use the meter, hence the lock.
type Meter struct {
	now func() int64 // the engine's clock

	submitting work // that dispatch is about to submit; only the line uses it
	watched    bool // the queue says when the device works; otherwise only reads are timed

	mu      sync.Mutex // guards the rest
	until   int64      // all time before this is counted
	working bool       // the device
	at      work       // that the device does, or did last
	reads   int        // under way
	waits   []wait     // steps that lack experts of a routed layer, the longest wait first
	// from first on: the work that the device has not begun, oldest first
	submitted []work
	first     int
	readNS    int64
	layers    []stages.Times // [layers+1]; the last is for the head and for work of no layer
	spells    spells
}

// work is what one submission is for.
type work struct {
	layer int32
	step  stages.StepID // 0: no step
}

// wait is a step that waits for experts of a layer.
type wait struct {
	step  stages.StepID
	layer int
}

// New returns the meter of a model with a number of layers. now reads the engine's clock, in
// nanoseconds.
func New(layers int, now func() int64) *Meter {
	return &Meter{now: now, submitting: work{layer: int32(layers)}, at: work{layer: int32(layers)}, layers: make([]stages.Times, layers+1)}
}

// count adds the time since the last note to its account. The caller holds m.mu.
func (m *Meter) count() {
	now := m.now()
	d := now - m.until
	m.until = now
	if m.reads > 0 {
		m.readNS += d
	}
	switch {
	case !m.watched:
	case m.working:
		t := &m.layers[m.at.layer]
		t.ComputeNS += d
		m.spells.of(m.at.step).DeviceNS += d
		if m.reads > 0 {
			t.OverlapNS += d
		}
	case len(m.waits) > 0:
		m.layers[m.waits[0].layer].DiskWaitNS += d
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
		m.submitting = work{layer: int32(len(m.layers) - 1)}
		if head := in.Head(); head != nil {
			m.submitting = work{int32(m.index(head.Layer)), head.ID}
		}
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

// Measured returns a queue that notes the layer of each submission, if q can say when the device
// works. Otherwise it returns q.
func (m *Meter) Measured(q gpu.Queue) gpu.Queue {
	w, ok := q.(gpu.Watched)
	if !ok {
		return q
	}
	m.watched = true
	w.Watch(m.work)
	return &measuredQueue{q, m}
}

// work notes that the device begins or ends the oldest submission.
func (m *Meter) work(working bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count()
	m.working = working
	if !working {
		return
	}
	m.at = m.submitted[m.first]
	if m.first++; m.first == len(m.submitted) {
		m.submitted, m.first = m.submitted[:0], 0
	}
}

// measuredQueue tells the meter of submissions.
type measuredQueue struct {
	gpu.Queue
	m *Meter
}

// Submit notes the layer first, because the device may begin before the queue returns.
func (q *measuredQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	q.m.submit()
	t, err := q.Queue.Submit(c)
	if err != nil {
		q.m.unsubmit()
	}
	return t, err
}

func (m *Meter) submit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	// a device that is never idle must not make the list grow without bound
	if m.first >= 64 && 2*m.first >= len(m.submitted) {
		n := copy(m.submitted, m.submitted[m.first:])
		m.submitted, m.first = m.submitted[:n], 0
	}
	m.submitted = append(m.submitted, m.submitting)
}

// unsubmit removes a submission that the queue refused. The device may meanwhile have begun earlier
// ones, but not this one.
func (m *Meter) unsubmit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.submitted = m.submitted[:len(m.submitted)-1]
	if m.first == len(m.submitted) {
		m.submitted, m.first = m.submitted[:0], 0
	}
}
