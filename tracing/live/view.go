package live

import (
	"time"

	"github.com/moeflux/moeflux-actor/tracing/analyse"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// View makes frames of an engine's records, for one listener. One goroutine uses it.
type View struct {
	log   *record.Log
	meta  record.Meta
	began int64 // on the engine's clock

	seen   cursors
	missed uint64 // until the last frame
	window window
	cells  *cells
	flow   flow
	texts  texts
	tokens tokens
}

// cursors is how far a view has come in each table.
type cursors struct {
	handled, steps, ended, segments, requests, waits, uses, reads, guesses, evictions, submissions, levels, answers record.Cursor
}

// New returns a view of what happens from now on. After that, Start says what was before.
func New(log *record.Log, meta record.Meta) *View {
	v := &View{log: log, meta: meta, cells: newCells(meta.Model.Layers, meta.Model.Experts)}
	v.began = v.now()
	v.cells.cooledAt = v.began
	v.flow.init(&meta)
	v.texts.init()
	// Of texts that are under way what there is of their past counts, too.
	v.seen = cursors{
		handled: log.Handled.End(), waits: log.Waits.End(), uses: log.Uses.End(), reads: log.Reads.End(), guesses: log.Guesses.End(),
		evictions: log.Evictions.End(), submissions: log.Submissions.End(), answers: log.Answers.End(),
	}
	// The last level that was told holds until the next one.
	each(&log.Levels, &v.seen.levels, func(l *record.Level) { v.flow.level = *l })
	v.seen.levels.Missed = 0
	v.tokens.remember(v.began, v.seen)
	return v
}

// Start says where the experts are, [layers*experts], and how often each was picked until now. What
// records have told since New counts as newer. nil leaves all on the disk, or all in their slots in
// an engine that has them there from the beginning.
func (v *View) Start(where []Cell, picks []int64) {
	for k := range v.cells.where {
		switch {
		case v.meta.Machine.Resident && v.meta.Model.Routed[k/v.cells.experts]:
			v.cells.where[k] = InSlot
		case k < len(where):
			v.cells.where[k] = where[k]
		}
		if k < len(picks) {
			v.cells.heat[k] = float64(picks[k])
		}
	}
}

// now returns the present moment on the engine's clock.
func (v *View) now() int64 { return int64(time.Since(v.meta.Epoch)) }

// Begin returns the first message, to a listener that gets a frame every so often.
func (v *View) Begin(model string, every time.Duration) Begin {
	m, e := &v.meta.Model, &v.meta.Engine
	b := Begin{
		Model: model, Program: v.meta.Program, Epoch: v.meta.Epoch.Format(time.RFC3339Nano), Exactness: v.meta.Exactness, Device: v.meta.Machine.Device,
		EveryUS: every.Microseconds(), Layers: m.Layers, LayerKinds: m.LayerKinds, Routed: m.Routed, Experts: m.Experts, TopK: m.TopK, ExpertSize: m.SlotBytes,
		Resident: v.meta.Machine.Resident, RingDepth: e.RingDepth, ReadWorkers: e.ReadWorkers, Stages: v.meta.Stages,
	}
	for _, c := range analyse.Causes() {
		b.Causes = append(b.Causes, Named{c.String(), c.Words()})
	}
	for _, w := range analyse.Works() {
		b.Works = append(b.Works, w.String())
	}
	return b
}

// Frame returns what there is to see now, but for requests, which clients make: Sequence has what
// the engine knows of each.
func (v *View) Frame() *Frame {
	before := v.seen
	now := v.now()
	v.read()
	f := &Frame{AtUS: us(now), Missed: v.missedSince()}
	v.tokens.explain(v, f, now)
	f.Pipeline = v.flow.pipeline(v, now)
	if len(v.cells.where) > 0 {
		if f.Experts = v.cells.frame(now); f.Experts != nil {
			t := v.window.total(now-windowNS, now)
			f.Experts.Hits, f.Experts.Late, f.Experts.Misses, f.Experts.Wasted = int(t.hits), int(t.late), int(t.misses), int(t.wasted)
		}
	}
	v.tokens.remember(now, before)
	return f
}

// windowNS is the time that shares and rates are of.
const windowNS = parts * partNS

// read takes in what is new. Steps come first, since others are about them.
func (v *View) read() {
	l, c := v.log, &v.seen
	lost := c.ended.Missed
	each(&l.Steps, &c.steps, v.flow.step)
	each(&l.Segments, &c.segments, func(s *record.Segment) { v.texts.segment(s, v.flow.steps[s.Step]) })
	each(&l.Handled, &c.handled, func(h *record.Handled) { v.flow.handled(&v.window, h) })
	each(&l.StepsEnded, &c.ended, func(e *record.StepEnded) {
		v.flow.ended(&v.window, e)
		v.texts.ended(e)
	})
	each(&l.Requests, &c.requests, v.request)
	each(&l.Uses, &c.uses, func(u *record.Use) {
		v.cells.use(u)
		if s := v.window.of(u.AtNS); s != nil {
			switch u.Found {
			case record.Resident:
				s.hits++
			case record.Late:
				s.late++
			default:
				s.misses++
			}
		}
	})
	each(&l.Guesses, &c.guesses, v.cells.guess)
	each(&l.Reads, &c.reads, func(r *record.Read) {
		v.cells.read(r)
		v.flow.read(&v.window, r)
	})
	each(&l.Evictions, &c.evictions, func(e *record.Eviction) {
		if v.cells.evict(e); e.Unused == 1 {
			if s := v.window.of(e.AtNS); s != nil {
				s.wasted++
			}
		}
	})
	each(&l.Submissions, &c.submissions, func(s *record.Submission) { v.flow.submission(&v.window, s) })
	each(&l.Answers, &c.answers, func(*record.Answer) {}) // tokens are told of with them
	each(&l.Levels, &c.levels, func(l *record.Level) { v.flow.level = *l })
	v.flow.settle(&v.window, c.ended.Missed > lost)
}

func (v *View) request(r *record.Request) {
	v.texts.request(r)
	if r.Outcome != record.Answered || r.EndedNS < v.began {
		return
	}
	if s := v.window.of(r.EndedNS); s != nil {
		s.answered++
	}
	v.tokens.answered(r)
}

// each calls f with each new record of a table.
func each[T any](t *record.Table[T], c *record.Cursor, f func(*T)) {
	t.Read(c, func(all []T) {
		for i := range all {
			f(&all[i])
		}
	})
}

// missedSince returns how many records were missed since it was called last. What was forgotten
// before the view began does not count.
func (v *View) missedSince() uint64 {
	c := &v.seen
	all := c.handled.Missed + c.waits.Missed + c.uses.Missed + c.reads.Missed + c.guesses.Missed + c.evictions.Missed + c.submissions.Missed + c.levels.Missed + c.answers.Missed
	n := all - v.missed
	v.missed = all
	return n
}

// us returns whole microseconds.
func us(ns int64) int64 { return ns / 1e3 }
