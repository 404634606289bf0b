package metering

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// work is what one submission is for, and when it was submitted and begun.
type work struct {
	step  stages.StepID // 0: no step
	layer int32
	more  int32 // further layers
	wave  int32 // -1: not one of experts
	rows  int32 // of the step
	uses  int32 // of a wave: experts
	picks int32 // of a wave: picks of them
	part  record.Part
	marks []*gpu.Mark // at the ends of layers
	after uint64      // how many submissions to the part before are done first

	submittedNS, beganNS, pausedNS, overlapNS, starvedNS int64
}

// backlog is submissions that the device has not begun.
type backlog struct {
	all   []work // from first on, oldest first
	first int
}

// device is what one part of the device does and is to do: what is not urgent, and what is.
type device struct {
	submitted      [2]backlog
	at             [2]work // that it does, or did last
	busy           [2]bool // whether it has begun that
	held           [2]bool // it would have, but needs what the part before has not done yet
	entered, ended uint64  // submissions ever, and those of them that are done
}

// working returns what the part works on: urgent work runs amid other work. Nil is nothing.
func (d *device) working() *work {
	k := class(d.busy[1])
	if !d.busy[k] {
		return nil
	}
	return &d.at[k]
}

// Measured returns a queue of a device with a number of parts (gpu.PartsOf) that notes the layer of
// each submission, if q can say when the device works. Otherwise it returns q.
func (m *Meter) Measured(q gpu.Queue, parts int) gpu.Queue {
	w, ok := q.(gpu.Watched)
	if !ok {
		return q
	}
	m.watched, m.devices = true, make([]device, parts)
	w.Watch(m.work)
	return &measuredQueue{q, m}
}

// class is the place of urgent work, or of other work, in a pair.
func class(urgent bool) int {
	if urgent {
		return 1
	}
	return 0
}

// work notes that a part of the device began or ended the oldest submission of a class.
func (m *Meter) work(p gpu.Progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count()
	d, k, at := &m.devices[p.Part], class(p.Urgent), m.until-p.LateNS
	if p.Working {
		d.at[k] = d.submitted[k].pop()
		if d.held[k] = p.Part > 0 && d.at[k].after > m.devices[p.Part-1].ended; !d.held[k] {
			m.begin(d, k, at)
		}
		return
	}
	w := &d.at[k]
	if d.held[k] { // what it needed was done, though nobody has said so yet
		m.begin(d, k, at-p.DeviceNS)
	}
	d.busy[k] = false
	if p.Urgent && d.busy[0] {
		d.at[0].pausedNS += m.until - w.beganNS
	}
	endedNS := max(at, w.beganNS)
	m.compute(w, endedNS-m.until)
	m.note(w, p, endedNS)
	if d.ended++; p.Part+1 < len(m.devices) {
		m.release(&m.devices[p.Part+1], d.ended, at)
	}
}

// begin notes that a part began what it is at.
func (m *Meter) begin(d *device, k int, at int64) {
	w := &d.at[k]
	d.busy[k], d.held[k] = true, false
	w.beganNS, w.starvedNS, m.starved = min(max(at, w.submittedNS), m.until), m.starved, 0
	m.compute(w, m.until-w.beganNS)
}

// release begins what a part would have begun, had the part before done so many submissions.
func (m *Meter) release(d *device, ended uint64, at int64) {
	for k := range d.held {
		if d.held[k] && d.at[k].after <= ended {
			m.begin(d, k, at)
		}
	}
}

// compute puts right how long the device has worked on w, what was counted until now. Reads went on
// beside no more than that.
func (m *Meter) compute(w *work, ns int64) {
	t := &m.layers[w.layer]
	t.ComputeNS += ns
	m.spells.of(w.step).DeviceNS += ns
	if over := w.overlapNS - (m.until + ns - w.beganNS); over > 0 {
		t.OverlapNS -= over
		w.overlapNS -= over
	}
}

// workOf returns what dispatch submits when it has a message.
func (m *Meter) workOf(in stages.Message) work {
	w := work{layer: int32(len(m.layers) - 1), wave: -1}
	head := in.Head()
	if head == nil {
		return w
	}
	w.step, w.layer = head.ID, int32(m.index(head.Layer))
	if head.Batch != nil {
		w.rows = int32(len(head.Batch.Rows))
	}
	switch in := in.(type) {
	case *stages.BeginLayer:
		w.more = int32(in.More)
	case *stages.WaveResident:
		w.wave, w.uses = int32(in.Wave), int32(len(in.Uses))
		for _, u := range in.Uses {
			w.picks += int32(len(in.Plan.Uses[u].Pairs))
		}
	}
	return w
}

// note writes the record of a submission that has ended. The caller holds m.mu.
func (m *Meter) note(w *work, p gpu.Progress, endedNS int64) {
	r := record.Submission{
		Step: uint64(w.step), Layer: w.layer, More: w.more, Wave: w.wave, Rows: w.rows, Uses: w.uses, Picks: w.picks, Part: w.part, Urgent: uint8(class(p.Urgent)), Device: uint8(p.Part),
		SubmittedNS: w.submittedNS, BeganNS: w.beganNS, EndedNS: endedNS, DeviceNS: p.DeviceNS, PausedNS: w.pausedNS, OverlapNS: w.overlapNS, StarvedNS: w.starvedNS,
	}
	if w.step == 0 {
		r.Layer = -1
	}
	if !m.noteLayers(r, w.marks) {
		m.log.Submissions.Add(r)
	}
	w.marks = nil
}

// noteLayers writes a record for each layer of a submission in place of one for all, if the device
// has marked where each of them ends. The device's clock says how long each took; the last ends
// when the queue said that all was done. It reports false if the device has not marked the layers,
// or if other work ran amid them or reads ran beside them, since nothing tells beside which.
func (m *Meter) noteLayers(r record.Submission, marks []*gpu.Mark) bool {
	if len(marks) == 0 || r.PausedNS+r.OverlapNS > 0 || marks[0].NS == 0 || marks[len(marks)-1].NS > r.DeviceNS {
		return false
	}
	for i, mark := range marks[1:] {
		if mark.NS < marks[i].NS {
			return false
		}
	}
	began := r.EndedNS - r.DeviceNS // of the work, on the engine's clock
	of, done := r, int64(0)
	for i, mark := range marks {
		end := mark.NS
		if i == len(marks)-1 {
			end = r.DeviceNS
		}
		of.Layer, of.More, of.DeviceNS = mark.Tag, 0, end-done
		of.EndedNS = max(of.BeganNS, began+end)
		m.log.Submissions.Add(of)
		of.BeganNS, of.StarvedNS, done = of.EndedNS, 0, end
	}
	return true
}

// measuredQueue tells the meter of submissions.
type measuredQueue struct {
	gpu.Queue
	m *Meter
}

// Submit notes what it is first, because the device may begin before the queue returns.
func (q *measuredQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	part, urgent := c.Part, c.Urgent
	if part < 0 || part >= len(q.m.devices) {
		return q.Queue.Submit(c) // which refuses it
	}
	q.m.submit(c)
	t, err := q.Queue.Submit(c)
	if err != nil {
		q.m.unsubmit(part, urgent)
	}
	return t, err
}

func (m *Meter) submit(c *gpu.Commands) {
	w := m.submitting
	w.part, w.marks, w.submittedNS = record.Part(c.Tag), c.Marks(), m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(c.Moves) > 0 && c.Part > 0 {
		w.after = m.devices[c.Part-1].entered
	}
	d := &m.devices[c.Part]
	d.entered++
	d.submitted[class(c.Urgent)].push(w)
}

// unsubmit removes a submission that the queue refused. The device may meanwhile have begun earlier
// ones, but not this one.
func (m *Meter) unsubmit(part int, urgent bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := &m.devices[part]
	d.entered--
	d.submitted[class(urgent)].takeBack()
}

func (b *backlog) push(w work) {
	// a device that is never idle must not make the list grow without bound
	if b.first >= 64 && 2*b.first >= len(b.all) {
		n := copy(b.all, b.all[b.first:])
		b.all, b.first = b.all[:n], 0
	}
	b.all = append(b.all, w)
}

// pop removes the oldest, and takeBack the newest.
func (b *backlog) pop() work {
	w := b.all[b.first]
	b.first++
	b.rewind()
	return w
}

func (b *backlog) takeBack() {
	b.all = b.all[:len(b.all)-1]
	b.rewind()
}

// rewind begins at the front again when nothing is left.
func (b *backlog) rewind() {
	if b.first == len(b.all) {
		b.all, b.first = b.all[:0], 0
	}
}
