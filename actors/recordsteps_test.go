package actors_test

import (
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// The records of steps, of what they are made of and of requests say what the sequencer was asked
// for, and what it answered and counted.
func TestRecordsOfSteps(t *testing.T) {
	for name, cfg := range recordedEngines(t) {
		t.Run(name, func(t *testing.T) {
			s, r, stats := watchedEngine(t, cfg)
			rows, decoded, failed := int64(0), int64(0), int64(0)
			left := make(map[uint64]int32) // rows of a step that no segment has yet
			for _, st := range r.Steps {
				rows, decoded, left[st.Step] = rows+int64(st.Rows), decoded+int64(st.Decode), st.Rows
				if (st.Urgent == 1) != (st.Decode == st.Rows) || st.Urgent == 0 && st.Decode > 0 {
					t.Errorf("step %+v decodes some of its rows", st)
				}
			}
			for _, e := range r.StepsEnded {
				failed += int64(e.Failed)
			}
			if n := int64(len(r.Steps)); n != stats.Steps || rows != stats.Rows || len(r.StepsEnded) != len(r.Steps) || failed != stats.FailedSteps || decoded != 22 {
				t.Errorf("%d steps of %d rows, %d of them decoded, of which %d ended and %d failed; the engine counted %d, %d and %d, and 22 tokens were fed back",
					n, rows, decoded, len(r.StepsEnded), failed, stats.Steps, stats.Rows, stats.FailedSteps)
			}
			chunks := s.chunks()
			if len(r.Requests) != len(chunks) {
				t.Fatalf("%d requests are recorded, there were %d", len(r.Requests), len(chunks))
			}
			given := make(map[uint64]int32) // rows that segments have of a request
			for _, g := range r.Segments {
				want := chunks[g.Request]
				if g.Seq != want.Seq || g.ArrivedNS != want.ArrivedNS || g.Pos != want.Pos+given[g.Request] || g.Rows <= 0 {
					t.Errorf("segment %+v of request %+v, of which %d rows were computed", g, want, given[g.Request])
				}
				given[g.Request] += g.Rows
				left[g.Step] -= g.Rows
			}
			for step, n := range left {
				if n != 0 {
					t.Errorf("the segments of step %d lack %d of its rows", step, n)
				}
			}
			for _, q := range r.Requests {
				want := chunks[q.Request]
				first := firstStep(r, q.Request)
				if q.BeganNS != first || q.EndedNS < first || given[q.Request] != q.Rows {
					t.Errorf("request %+v, of which %d rows are in segments, first at %d", q, given[q.Request], first)
				}
				q.BeganNS, q.EndedNS = 0, 0
				if q != want {
					t.Errorf("request %+v, want %+v", q, want)
				}
			}
			checkLevels(t, r, cfg.ExpertMemory/pageSlot, stats.SlotsUsed)
		})
	}
}

// chunks returns the requests that the engine was given, with how they were answered.
func (s *seen) chunks() map[uint64]record.Request {
	all := make(map[uint64]record.Request)
	running := make(map[uint64]uint64) // by sequence
	for _, m := range s.messages {
		if c := m.chunk; c != nil {
			all[c.Request], running[c.Seq] = *c, c.Request
		}
		for _, a := range m.answers {
			c := all[running[a.seq]]
			c.Pos = int32(a.pos)
			c.Hit, c.Late, c.Missed = int32(a.cost.Hit), int32(a.cost.Late), int32(a.cost.Missed)
			c.SlotBytes, c.HostBytes, c.DiskBytes, c.AheadBytes = a.cost.SlotBytes, a.cost.HostBytes, a.cost.DiskBytes, a.cost.AheadBytes
			c.DeviceNS, c.DiskWaitNS = a.cost.DeviceNS, a.cost.DiskWaitNS
			if !a.ok {
				c.Outcome = record.Failed
			}
			all[c.Request] = c
		}
	}
	return all
}

// firstStep returns when the first step of a request was formed.
func firstStep(r *record.Recording, request uint64) int64 {
	for _, g := range r.Segments {
		if g.Request != request {
			continue
		}
		for _, s := range r.Steps {
			if s.Step == g.Step {
				return s.BeganNS
			}
		}
	}
	return 0
}

// checkLevels wants one level for each moment at which steps end. In the last one as many slots of
// a streamed engine are used as the engine counts afterwards: a guess that was given up leaves its
// slot empty.
func checkLevels(t *testing.T, r *record.Recording, slots int64, used int) {
	t.Helper()
	var ends []int64
	for _, s := range r.StepsEnded {
		ends = append(ends, s.EndedNS)
	}
	if ends = slices.Compact(ends); len(r.Levels) != len(ends) {
		t.Fatalf("%d levels, steps ended at %d moments", len(r.Levels), len(ends))
	}
	for i, l := range r.Levels {
		if l.AtNS < ends[i] {
			t.Errorf("level %+v was noted before its step's end at %d", l, ends[i])
		}
		if l.ReadBytes%pageSlot != 0 || slots > 0 && (l.Slots != int32(slots) || l.SlotsUsed > l.Slots || int64(l.ReadsQueued+l.ReadsRunning) > l.ReadBytes/pageSlot) {
			t.Errorf("level %+v of an engine with %d slots", l, slots)
		}
	}
	if last := r.Levels[len(r.Levels)-1]; slots > 0 && (last.ReadBytes == 0 && last.SlotsUsed != int32(used) || last.Requests != 0) {
		t.Errorf("the last level is %+v, and %d slots are used afterwards", last, used)
	}
}

// Where a step's next layer could have begun and did not, and where a request could have been in a
// step and was not, records say why, to the nanosecond.
func TestRecordsOfWaits(t *testing.T) {
	reasons := make(map[record.Reason]int)
	missing := func() (of []record.Reason) {
		for _, reason := range []record.Reason{record.LayerCredit, record.Turn, record.StateReady} {
			if reasons[reason] == 0 {
				of = append(of, reason)
			}
		}
		return of
	}
	// Whether a text comes while a prompt has its turn depends on the machine's other work.
	for round := 0; round == 0 || round < 20 && len(missing()) > 0; round++ {
		for name, cfg := range recordedEngines(t) {
			t.Run(name, func(t *testing.T) {
				s, r, _ := watchedEngine(t, cfg)
				for _, w := range r.Waits {
					reasons[w.Reason]++
				}
				checkStepWaits(t, s, r)
				checkRequestWaits(t, s, r)
			})
		}
	}
	if of := missing(); of != nil {
		t.Errorf("nothing waited for the reasons %v: %v", of, reasons)
	}
}

type layerOf struct {
	step  uint64
	layer int32
}

// checkStepWaits compares waits of steps with the time from a layer's submission to the beginning
// of the next one.
func checkStepWaits(t *testing.T, s *seen, r *record.Recording) {
	t.Helper()
	could := make(map[layerOf]int64) // when a layer could begin
	for _, st := range r.Steps {
		could[layerOf{st.Step, 0}] = st.BeganNS
	}
	waited := make(map[layerOf]int64)
	for _, w := range r.Waits {
		if w.Reason == record.LayerCredit || w.Reason == record.Turn && w.Step != 0 {
			waited[layerOf{w.Step, w.Layer}] += w.EndedNS - w.BeganNS
		}
	}
	begun := 0
	for i, m := range s.messages {
		h := r.Handled[i]
		if stages.StageID(h.Stage) == stages.Sequencer && stages.Kind(h.Message) == stages.KindLayerSubmitted {
			could[layerOf{h.Step, h.Layer + h.More + 1}] = h.BeganNS
		}
		for _, b := range m.begins {
			begun++
			at := layerOf{b.step, int32(b.layer)}
			if want := h.BeganNS - could[at]; could[at] == 0 || waited[at] != want {
				t.Errorf("step %d waited %d ns for layer %d by the records; it could begin at %d and began at %d", b.step, waited[at], b.layer, could[at], h.BeganNS)
			}
		}
	}
	if begun < 10 {
		t.Errorf("only %d layers began", begun)
	}
}

// checkRequestWaits compares waits of requests with the time that they were in no step.
func checkRequestWaits(t *testing.T, s *seen, r *record.Recording) {
	t.Helper()
	waited, outside := make(map[uint64]int64), make(map[uint64]int64)
	for _, w := range r.Waits {
		if w.Step == 0 {
			waited[w.Request] += w.EndedNS - w.BeganNS
		}
	}
	began, ended := make(map[uint64]int64), make(map[uint64]int64) // of steps
	for _, st := range r.Steps {
		began[st.Step] = st.BeganNS
	}
	for _, e := range r.StepsEnded {
		ended[e.Step] = e.EndedNS
	}
	free := make(map[uint64]int64) // since when a request is in no step
	for i, m := range s.messages {
		if m.chunk != nil {
			free[m.chunk.Request] = r.Handled[i].BeganNS
		}
	}
	for _, g := range r.Segments {
		outside[g.Request] += began[g.Step] - free[g.Request]
		free[g.Request] = ended[g.Step]
	}
	for request, want := range outside {
		if waited[request] != want {
			t.Errorf("request %d waited %d ns by the records, it was in no step for %d", request, waited[request], want)
		}
	}
}
