package stagetest

import (
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// watchedSteps compares what the sequencer records with what it is told and asks for: steps,
// requests, and waits without a gap.
type watchedSteps struct {
	log  *record.Log
	seen struct{ steps, ended, segments, requests record.Cursor }
	// by step: when its next layer could begin, 0 if it cannot, and how long it has waited since
	steps map[uint64]*watchedWait
	// likewise of requests: since when they are in no step. Callers number them without repeats, or
	// not at all.
	requests map[uint64]*watchedWait
	in       map[uint64][]uint64 // requests in a step
	figures  struct{ steps, rows, failed int64 }
	begun    map[uint64]bool
	given    map[uint64]bool // steps that are given up, and not over
}

// watchedWait is what may wait, since when, and how long it has by the records.
type watchedWait struct {
	sinceNS, waitedNS int64
	layer             int32
	rows              int32
	cancelled         error // why its caller gave it up
}

func newWatchedSteps(log *record.Log) watchedSteps {
	return watchedSteps{
		log: log, steps: make(map[uint64]*watchedWait), requests: make(map[uint64]*watchedWait), in: make(map[uint64][]uint64),
		begun: make(map[uint64]bool), given: make(map[uint64]bool),
	}
}

// handled looks at what the sequencer has recorded of a message, waits among it. The outbox is
// still full.
func (w *watchedSteps) handled(m stages.Message, waits []record.Wait, out *stages.Outbox) (err error) {
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	now := out.NowNS
	if m, ok := m.(*stages.CollectStats); ok { // it counts what was before it
		keep(w.collected(m.Stats))
	}
	if c, ok := m.(*stages.EvalChunk); ok {
		w.requests[c.Request] = &watchedWait{sinceNS: now}
	}
	if c, ok := m.(*stages.CancelEval); ok && w.requests[c.Request] != nil {
		w.requests[c.Request].cancelled = c.Cause
	}
	if l, ok := m.(*stages.LayerSubmitted); ok {
		if s := w.steps[uint64(l.ID)]; s != nil {
			s.sinceNS, s.waitedNS, s.layer = now, 0, int32(l.Layer+l.More+1)
		}
	}
	for i := range waits {
		keep(w.wait(&waits[i], now))
	}
	w.log.StepsEnded.Read(&w.seen.ended, func(all []record.StepEnded) {
		for _, e := range all {
			keep(w.ended(e, now))
		}
	})
	w.log.Steps.Read(&w.seen.steps, func(all []record.Step) {
		for _, s := range all {
			w.steps[s.Step] = &watchedWait{sinceNS: now, rows: s.Rows}
			if s.BeganNS != now {
				keep(fmt.Errorf("%+v is recorded at %d", s, now))
			}
		}
	})
	w.log.Segments.Read(&w.seen.segments, func(all []record.Segment) {
		for _, g := range all {
			keep(w.segment(g, now))
		}
	})
	for _, s := range out.Sends {
		if b, ok := s.Msg.(*stages.BeginLayer); ok && s.To == stages.Dispatch {
			keep(w.begins(b, now))
		}
		if d, ok := s.Msg.(*stages.DrainStep); ok { // it counts as failed from now on
			w.given[uint64(d.Step.ID)] = true
			w.figures.failed++
		}
	}
	keep(w.answers(out, now))
	return err
}

// wait takes a record of waiting, which must end now and be about something that waits.
func (w *watchedSteps) wait(r *record.Wait, now int64) error {
	of := w.requests[r.Request]
	if r.Step != 0 {
		of = w.steps[r.Step]
	}
	switch {
	case r.Step == 0 && r.Request == 0: // of a caller who does not number them, or of no chunk
		return nil
	case of == nil || r.EndedNS != now || r.BeganNS < of.sinceNS || r.Wave != -1 || r.Step != 0 && r.Layer != of.layer || r.Step == 0 && r.Layer != -1:
		return fmt.Errorf("%+v is recorded at %d, of %+v", *r, now, of)
	}
	switch r.Reason {
	case record.LayerCredit:
		if r.Step == 0 {
			return fmt.Errorf("a request waits for a credit: %+v", *r)
		}
	case record.Lane, record.Company, record.Memory, record.StateReady:
		if r.Step != 0 {
			return fmt.Errorf("a step waits for what only a request does: %+v", *r)
		}
	case record.Turn:
	default:
		return fmt.Errorf("the sequencer records %+v", *r)
	}
	of.waitedNS += r.EndedNS - r.BeganNS
	return nil
}

// segment checks that rows of a request come into a step after waits without a gap.
func (w *watchedSteps) segment(g record.Segment, now int64) error {
	w.steps[g.Step].rows -= g.Rows
	r := w.requests[g.Request]
	switch {
	case g.Request == 0:
		return nil
	case r == nil || r.sinceNS < 0 || r.waitedNS != now-r.sinceNS:
		return fmt.Errorf("%+v at %d, of a request that waited for %+v", g, now, r)
	}
	r.sinceNS, r.waitedNS = -1, 0
	w.in[g.Step] = append(w.in[g.Step], g.Request)
	return nil
}

// begins checks that a layer begins after waits without a gap.
func (w *watchedSteps) begins(b *stages.BeginLayer, now int64) error {
	s := w.steps[uint64(b.ID)]
	if s == nil || s.rows != 0 || s.layer != int32(b.Layer) || s.waitedNS != now-s.sinceNS {
		return fmt.Errorf("%v begins at %d, by the records it waited for %+v", &b.Step, now, s)
	}
	if b.Layer == 0 {
		w.figures.steps++
		w.figures.rows += int64(len(b.Batch.Rows))
		w.begun[uint64(b.ID)] = true
	}
	return nil
}

// ended takes the end of a step.
func (w *watchedSteps) ended(e record.StepEnded, now int64) error {
	if w.steps[e.Step] == nil || e.EndedNS != now {
		return fmt.Errorf("%+v is recorded at %d", e, now)
	}
	if failed := e.Failed == 1 && w.begun[e.Step]; failed != w.given[e.Step] {
		return fmt.Errorf("%+v is recorded of a step that was begun: %t, and given up: %t", e, w.begun[e.Step], w.given[e.Step])
	}
	delete(w.given, e.Step)
	for _, request := range w.in[e.Step] {
		w.requests[request].sinceNS = now
	}
	delete(w.steps, e.Step)
	delete(w.in, e.Step)
	return nil
}

// answers checks that each answer to a chunk has its record, in the same order.
func (w *watchedSteps) answers(out *stages.Outbox, now int64) error {
	var answers []*stages.ChunkEvaluated
	for _, a := range out.Answers {
		if a, ok := a.Msg.(*stages.ChunkEvaluated); ok {
			answers = append(answers, a)
		}
	}
	var requests []record.Request
	w.log.Requests.Read(&w.seen.requests, func(all []record.Request) { requests = append(requests, all...) })
	if len(requests) != len(answers) {
		return fmt.Errorf("%d chunks are answered, %d requests are recorded", len(answers), len(requests))
	}
	for i, r := range requests {
		a := answers[i]
		if r.Seq != uint64(a.Seq) || (r.Outcome == record.Answered) != (a.Err == nil) || r.EndedNS != now || r.ArrivedNS > now || r.BeganNS > now {
			return fmt.Errorf("%+v is recorded at %d of an answer for sequence %d with error %v", r, now, a.Seq, a.Err)
		}
		cause := w.requests[r.Request].cancelled
		given := cause != nil && errors.Is(a.Err, cause)
		if cancelled := r.Outcome == record.Cancelled; given && !cancelled || cancelled && !given && !errors.Is(a.Err, stages.ErrClosed) {
			return fmt.Errorf("%+v: the answer has error %v", r, a.Err)
		}
		if r.BeganNS == 0 && (r.Outcome == record.Answered || r.Outcome == record.Failed) || r.BeganNS > 0 && r.Outcome == record.Refused {
			return fmt.Errorf("%+v: the outcome does not fit the step", r)
		}
	}
	return nil
}

// collected compares the records with what the sequencer has counted.
func (w *watchedSteps) collected(s *stages.Stats) error {
	if f := &w.figures; s.Steps != f.steps || s.Rows != f.rows || s.FailedSteps != f.failed {
		return fmt.Errorf("%d steps, %d rows, %d failed are counted; records have %+v", s.Steps, s.Rows, s.FailedSteps, *f)
	}
	return nil
}
