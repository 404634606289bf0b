package tracing

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// replayBytes is the memory of the log that a recording is played into, a few steps at a time.
const replayBytes = 64 << 20

// Replay makes the spans of a recording: a trace for each sequence, whose root is a span
// SpanSequence. It calls pause after every few steps, so that exporters can keep up, and gives up
// with the error of pause.
func Replay(tp trace.TracerProvider, rec *record.Recording, pause func() error) (Stats, error) {
	p := &player{rec: rec, log: record.NewLog(replayBytes)}
	m := &rec.Meta
	p.e = NewEmitter(tp, p.log, About{
		Epoch: m.Epoch, LayerKinds: m.Model.LayerKinds, SlotBytes: m.Model.SlotBytes, TopK: m.Model.TopK,
		Host: m.Engine.Host, Exactness: m.Exactness,
	})
	p.e.Yield = func() {}
	var failed error
	p.e.Panicked = func(reason any) { failed = fmt.Errorf("tracing: a span processor panicked: %v", reason) }
	p.stage = indices(m.Stages, stages.NumStages, func(i int) string { return stages.StageID(i).String() })
	p.message = indices(m.Messages, int(stages.NumKinds), func(i int) string { return stages.Kind(i).String() })
	p.roots()
	for i := 0; i < len(rec.StepsEnded) && failed == nil; i += replaySteps {
		until := rec.StepsEnded[min(i+replaySteps, len(rec.StepsEnded))-1].EndedNS
		p.play(until)
		p.e.Poll(until, false)
		if err := pause(); err != nil {
			return p.e.Stats, err
		}
	}
	p.play(math.MaxInt64)
	p.e.Poll(math.MaxInt64/2, true)
	if failed == nil {
		failed = pause()
	}
	return p.e.Stats, failed
}

// replaySteps is how many steps are played at a time.
const replaySteps = 8

// player puts the records of a recording into a log, in order of time.
type player struct {
	rec            *record.Recording
	log            *record.Log
	e              *Emitter
	stage, message []uint8 // the program's own numbers, by those of the recording

	at struct{ steps, ended, segments, requests, handled, waits, uses, reads, guesses, submissions, answers int }
}

// indices returns this program's numbers of names; one that it does not know is of nothing.
func indices(names []string, n int, name func(int) string) []uint8 {
	all := make([]uint8, 256)
	for i := range all {
		all[i] = math.MaxUint8
	}
	for i, want := range names[:min(len(names), len(all))] {
		for k := range n {
			if name(k) == want {
				all[i] = uint8(k)
			}
		}
	}
	return all
}

// callerOf names the span of a sequence, in whose trace its requests are.
func callerOf(seq uint64) (t [16]byte, s [8]byte) {
	t[0], s[0] = 1, 1 // not zero
	binary.BigEndian.PutUint64(t[8:], seq)
	return t, s
}

// roots begins the span of each sequence, and says when it ends.
func (p *player) roots() {
	type extent struct{ began, ended int64 }
	all := make(map[uint64]extent)
	var seqs []uint64
	for i := range p.rec.Requests {
		r := &p.rec.Requests[i]
		x, ok := all[r.Seq]
		if !ok {
			x.began = r.ArrivedNS
			seqs = append(seqs, r.Seq)
		}
		all[r.Seq] = extent{min(x.began, r.ArrivedNS), max(x.ended, r.EndedNS)}
	}
	for _, g := range p.rec.Segments { // of requests that had not ended
		if _, ok := all[g.Seq]; !ok {
			all[g.Seq] = extent{g.ArrivedNS, g.ArrivedNS}
			seqs = append(seqs, g.Seq)
		}
	}
	for _, seq := range seqs {
		traceID, spanID := callerOf(seq)
		c := &callSpan{untilNS: all[seq].ended}
		p.e.guard(func() {
			c.ctx, c.span = p.e.start(context.Background(), SpanSequence, all[seq].began, append(p.e.attrs[:0], KeySeq.Int64(int64(seq))))
			p.e.calls[spanKey{traceID, spanID}] = c
		})
	}
}

// play puts all records into the log that were written until a time.
func (p *player) play(until int64) {
	r, l, at := p.rec, p.log, &p.at
	add(r.Steps, &at.steps, until, &l.Steps, func(s *record.Step) int64 { return s.BeganNS })
	for ; at.segments < len(r.Segments); at.segments++ {
		g := r.Segments[at.segments]
		if at.steps < len(r.Steps) && g.Step >= r.Steps[at.steps].Step {
			break // its step is not played
		}
		g.TraceID, g.SpanID = callerOf(g.Seq)
		l.Segments.Add(g)
	}
	add(r.Handled, &at.handled, until, &handledBy{p}, func(h *record.Handled) int64 { return h.EndedNS })
	add(r.Waits, &at.waits, until, &l.Waits, func(w *record.Wait) int64 { return w.EndedNS })
	add(r.Uses, &at.uses, until, &l.Uses, func(u *record.Use) int64 { return u.AtNS })
	add(r.Guesses, &at.guesses, until, &l.Guesses, func(g *record.Guess) int64 { return g.AtNS })
	add(r.Reads, &at.reads, until, &l.Reads, readEnd)
	add(r.Answers, &at.answers, until, &l.Answers, func(a *record.Answer) int64 { return a.EndedNS })
	add(r.Submissions, &at.submissions, until, &l.Submissions, func(s *record.Submission) int64 { return s.EndedNS })
	add(r.Requests, &at.requests, until, &requestsBy{p}, func(q *record.Request) int64 { return q.EndedNS })
	add(r.StepsEnded, &at.ended, until, &l.StepsEnded, func(s *record.StepEnded) int64 { return s.EndedNS })
}

// add puts records into a table, in order, until the first that was written later.
func add[T any](recs []T, at *int, until int64, to interface{ Add(T) }, written func(*T) int64) {
	for ; *at < len(recs) && written(&recs[*at]) <= until; *at++ {
		to.Add(recs[*at])
	}
}

// handledBy and requestsBy put records into the log as this program and its emitter know them.
type (
	handledBy  struct{ p *player }
	requestsBy struct{ p *player }
)

// Add puts a record into the log.
func (h *handledBy) Add(r record.Handled) {
	r.Stage, r.Message = h.p.stage[r.Stage], h.p.message[r.Message]
	h.p.log.Handled.Add(r)
}

// Add puts a record into the log.
func (q *requestsBy) Add(r record.Request) {
	r.TraceID, r.SpanID = callerOf(r.Seq)
	q.p.log.Requests.Add(r)
}
