package live

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/analyse"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// The bounds of what is kept and told of steps and reads.
const (
	mostSteps     = 16   // told
	mostKeptSteps = 4096 // the ends of some were forgotten
	mostReads     = 4096 // of the last second
)

// flow is what goes through the pipeline.
type flow struct {
	stages  int
	waits   map[uint8]bool // messages after which a step waits for experts, by number
	layers  int32
	level   record.Level
	steps   map[uint64]*flying
	early   map[uint64]record.StepEnded // of steps that have not been read
	spells  []span                      // steps that ended in the window
	reads   []span                      // workers were at, in the window
	answers []analyse.Share
}

// span is a stretch of time.
type span struct{ from, to int64 }

// flying is a step under way.
type flying struct {
	record.Step
	layer   int32
	message uint8
}

func (f *flow) init(m *record.Meta) {
	f.stages, f.steps, f.waits, f.layers = min(len(m.Stages), mostStages), make(map[uint64]*flying), make(map[uint8]bool), int32(m.Model.Layers)
	f.early = make(map[uint64]record.StepEnded)
	for i, name := range m.Messages[:min(len(m.Messages), 256)] {
		f.waits[uint8(i)] = name == "LayerRouted" || name == "ExpertsRead"
	}
}

func (f *flow) step(s *record.Step) {
	if len(f.steps) > mostKeptSteps {
		clear(f.steps)
	}
	f.steps[s.Step] = &flying{Step: *s}
}

func (f *flow) handled(w *window, h *record.Handled) {
	if s := w.of(h.EndedNS); s != nil && int(h.Stage) < f.stages {
		s.stageNS[h.Stage] += float64(h.EndedNS - h.BeganNS)
		s.stageMessages[h.Stage]++
		s.stageMailboxNS[h.Stage] += float64(h.BeganNS - h.SentNS)
	}
	if s := f.steps[h.Step]; s != nil && h.Layer >= 0 {
		s.layer, s.message = max(s.layer, min(h.Layer+h.More, f.layers)), h.Message
	}
}

func (f *flow) ended(w *window, e *record.StepEnded) {
	s := f.steps[e.Step]
	if s == nil {
		if len(f.early) > mostKeptSteps {
			clear(f.early)
		}
		f.early[e.Step] = *e
		return
	}
	delete(f.steps, e.Step)
	f.spells = append(f.spells, span{s.BeganNS, e.EndedNS})
	if at := w.of(e.EndedNS); at != nil && e.Failed == 0 {
		at.rows += float64(s.Rows)
	}
}

// settle ends the steps whose ends were read before they were: tables are read one after the other,
// and a step may begin and end in between. lost says that ends were forgotten unread, so that any
// step may have ended.
func (f *flow) settle(w *window, lost bool) {
	for n, e := range f.early {
		if f.steps[n] != nil {
			delete(f.early, n)
			f.ended(w, &e)
		}
	}
	if lost {
		clear(f.steps)
	}
}

func (f *flow) read(w *window, r *record.Read) {
	if s := w.of(r.EndedNS); s != nil && r.Tier == record.FromDisk {
		s.bytes += float64(r.Bytes)
	}
	if r.BeganNS != 0 {
		f.reads = append(f.reads, span{r.BeganNS, r.EndedNS})
	}
}

func (f *flow) submission(w *window, s *record.Submission) {
	began := s.BeganNS
	if began == 0 { // the queue does not tell
		began = max(s.SubmittedNS, s.EndedNS-s.DeviceNS)
	}
	w.spread(began, s.EndedNS, float64(s.EndedNS-began-s.PausedNS), func(s *sums, ns float64) { s.deviceNS += ns })
	w.spread(began-s.StarvedNS, began, float64(s.StarvedNS), func(s *sums, ns float64) { s.starvedNS += ns })
}

// pipeline sums the window up.
func (f *flow) pipeline(v *View, now int64) Pipeline {
	from := max(now-windowNS, v.began)
	from = min(from/partNS*partNS, now-1)
	t, length := v.window.total(from, now), float64(now-from)
	p := Pipeline{
		WindowUS: us(now - from), TokensPerS: t.answered / length * 1e9, RowsPerS: t.rows / length * 1e9, BytesPerS: t.bytes / length * 1e9,
		Ring: f.level.Waves, ReadsQueued: f.level.ReadsQueued, ReadsRunning: f.level.ReadsRunning, ReadBytes: f.level.ReadBytes,
		Slots: f.level.Slots, SlotsUsed: f.level.SlotsUsed, Waiting: f.level.Requests,
	}
	for i := range f.stages {
		s := Stage{Busy: min(1, t.stageNS[i]/length), PerS: t.stageMessages[i] / length * 1e9}
		if n := t.stageMessages[i]; n > 0 {
			s.MailboxUS = t.stageMailboxNS[i] / n / 1e3
		}
		p.Stages = append(p.Stages, s)
	}
	working := f.flying(now)
	f.spells, f.reads = recent(f.spells, from, mostReads), recent(f.reads, from, mostReads)
	worked := share(union(append(slices.Clone(f.spells), working...), from, now), length)
	p.Device.Busy = min(1, t.deviceNS/length/float64(len(v.meta.Engine.Borders)+1)) // of all devices' time
	p.Device.Idle = f.idle(p.Device.Busy, worked, share(int64(t.starvedNS), length), analyse.Device)
	p.Disk.Busy = share(union(f.reads, from, now), length)
	p.Disk.Idle = f.idle(p.Disk.Busy, worked, 0, analyse.Disk)
	p.Steps = f.underWay(now)
	return p
}

// idle divides the time in which something did nothing: nobody had asked for anything where no step
// was under way; what waited for experts is known; the rest is what the last answered tokens spent
// their time on beside that.
func (f *flow) idle(busy, worked, starved float64, never analyse.Cause) []Share {
	rest := 1 - busy
	var idle []Share
	take := func(c analyse.Cause, part float64) {
		if part = min(part, rest); part > 1e-4 {
			idle = append(idle, Share{int(c), part})
			rest -= part
		}
	}
	take(analyse.Caller, 1-worked)
	take(analyse.Disk, starved)
	total := 0.0
	for _, s := range f.answers {
		if s.Cause != never && s.Cause != analyse.Caller && (s.Cause != analyse.Disk || starved == 0) {
			total += float64(s.NS)
		}
	}
	all := rest
	for _, s := range f.answers {
		if s.Cause != never && s.Cause != analyse.Caller && (s.Cause != analyse.Disk || starved == 0) {
			take(s.Cause, all*float64(s.NS)/total)
		}
	}
	take(analyse.Unexplained, rest)
	slices.SortStableFunc(idle, func(a, b Share) int { return cmp.Compare(b.Share, a.Share) })
	return idle
}

// flying returns the steps under way as times.
func (f *flow) flying(now int64) (all []span) {
	for _, s := range f.steps {
		all = append(all, span{s.BeganNS, now})
	}
	return all
}

// underWay returns the steps under way, the oldest first.
func (f *flow) underWay(now int64) (all []Step) {
	for _, s := range f.steps {
		one := Step{Step: s.Step.Step, AgeUS: us(now - s.BeganNS), Rows: s.Rows, Decode: s.Decode, Urgent: s.Urgent == 1, Layer: s.layer}
		if f.waits[s.message] {
			one.Waiting = "experts"
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Step) int { return cmp.Compare(a.Step, b.Step) })
	return all[:min(len(all), mostSteps)]
}

// recent drops spans that ended before a moment, and the oldest of too many.
func recent(all []span, from int64, most int) []span {
	all = slices.DeleteFunc(all, func(s span) bool { return s.to < from })
	if len(all) > most {
		all = slices.Delete(all, 0, len(all)-most)
	}
	return all
}

// union returns for how long within [from, to) at least one of the spans lasted. It changes their
// order.
func union(all []span, from, to int64) (ns int64) {
	for _, s := range merged(all) {
		ns += max(0, min(s.to, to)-max(s.from, from))
	}
	return ns
}

func share(ns int64, of float64) float64 { return min(1, float64(ns)/of) }

// merged joins spans that overlap. It changes all.
func merged(all []span) (joined []span) {
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, s := range all {
		if n := len(joined); n > 0 && s.from <= joined[n-1].to {
			joined[n-1].to = max(joined[n-1].to, s.to)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}
