package actors

import (
	"slices"
	"sync"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
)

// meter tells where time goes (stages.Times). Cores have no clock: it is told by the shells what
// expert-IO waits for and has under way, and by the device's queue when that works. Between two
// such moments nothing changes, so the time between them is counted whole. It allocates nothing
// once its lists have grown, and a note costs a look at the clock.
//
// The queue's goroutine and whoever runs the line both come here, hence the lock.
type meter struct {
	now func() int64 // the engine's clock

	submitting int  // layer of what dispatch handles; only the line looks at it
	watched    bool // the queue tells when it works; without, only reads are timed

	mu        sync.Mutex // guards the rest
	until     int64      // what was before is counted
	working   bool       // the device
	layer     int        // for which it works, or worked last
	reads     int        // under way
	waits     []wait     // steps whose layer is routed and lacks experts, the longest waiting first
	submitted []int32    // layers of what the device has not begun, oldest first, from first on
	first     int
	readNS    int64
	layers    []stages.Times // [layers+1]; the last is the head, and what belongs to no layer
}

// wait is a step that cannot go on without experts of a layer.
type wait struct {
	step  stages.StepID
	layer int
}

func newMeter(layers int, now func() int64) *meter {
	return &meter{now: now, submitting: layers, layer: layers, layers: make([]stages.Times, layers+1)}
}

// count adds the time since the last note to where it belongs. m.mu is held.
func (m *meter) count() {
	now := m.now()
	d := now - m.until
	m.until = now
	if m.reads > 0 {
		m.readNS += d
	}
	switch {
	case !m.watched:
	case m.working:
		t := &m.layers[m.layer]
		t.ComputeNS += d
		if m.reads > 0 {
			t.OverlapNS += d
		}
	case len(m.waits) > 0:
		m.layers[m.waits[0].layer].DiskWaitNS += d
	}
}

// before notes for which layer dispatch is about to submit.
func (m *meter) before(id stages.StageID, head *stages.Step) {
	if id != stages.Dispatch {
		return
	}
	m.submitting = len(m.layers) - 1
	if head != nil {
		m.submitting = m.index(head.Layer)
	}
}

// after notes what a stage made of a message. The outbox is still full.
func (m *meter) after(id stages.StageID, in stages.Message, out *stages.Outbox) {
	switch id {
	case stages.Combine:
		if in, ok := in.(*stages.CollectStats); ok {
			m.report(in.Stats)
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

// experts notes what expert-IO did: so many reads have ended, a layer was routed, a step was given
// up, and in the outbox what it reads and which layers have all they need.
func (m *meter) experts(ended int, routed *stages.LayerRouted, gone stages.StepID, out *stages.Outbox) {
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

// served strikes out a step that waits no longer. m.mu is held.
func (m *meter) served(step stages.StepID) {
	m.waits = slices.DeleteFunc(m.waits, func(w wait) bool { return w.step == step })
}

// index returns where a layer is counted.
func (m *meter) index(layer int) int {
	if layer < 0 || layer >= len(m.layers) {
		return len(m.layers) - 1
	}
	return layer
}

// of returns the times of a layer, and of more that follow it, until now.
func (m *meter) of(layer, more int) (t stages.Times) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count()
	for i := range 1 + more {
		t.Add(m.layers[m.index(layer+i)])
	}
	return t
}

// report fills in the times until now.
func (m *meter) report(s *stages.Stats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count()
	s.Times = stages.Times{ReadNS: m.readNS}
	for i, t := range m.layers {
		s.Times.Add(t)
		if i < len(s.Layers) {
			s.Layers[i].Times = t
		}
	}
}

// measured returns a queue that notes the layers of what is submitted; the device tells when it
// works on it.
func (m *meter) measured(q gpu.Queue) gpu.Queue {
	w, ok := q.(gpu.Watched)
	if !ok {
		return q
	}
	m.watched = true
	w.Watch(m.work)
	return &measuredQueue{q, m}
}

// work notes that the device begins or ends the oldest work that it has.
func (m *meter) work(working bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count()
	m.working = working
	if !working {
		return
	}
	m.layer = int(m.submitted[m.first])
	if m.first++; m.first == len(m.submitted) {
		m.submitted, m.first = m.submitted[:0], 0
	}
}

// measuredQueue tells the meter of submissions.
type measuredQueue struct {
	gpu.Queue
	m *meter
}

// Submit notes the layer first: the device may be at work before the queue has returned.
func (q *measuredQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	q.m.submit()
	t, err := q.Queue.Submit(c)
	if err != nil {
		q.m.unsubmit()
	}
	return t, err
}

func (m *meter) submit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	// a device that is never idle must not make the list grow for ever
	if m.first >= 64 && 2*m.first >= len(m.submitted) {
		n := copy(m.submitted, m.submitted[m.first:])
		m.submitted, m.first = m.submitted[:n], 0
	}
	m.submitted = append(m.submitted, int32(m.submitting))
}

// unsubmit takes back a submission that the queue refused. What was submitted before may have been
// begun meanwhile, this was not.
func (m *meter) unsubmit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.submitted = m.submitted[:len(m.submitted)-1]
	if m.first == len(m.submitted) {
		m.submitted, m.first = m.submitted[:0], 0
	}
}
