package analyse

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// index is a recording, ordered so that one finds what was going on at a time.
type index struct {
	rec *record.Recording

	handled []record.Handled    // by BeganNS; they do not overlap, since the stages of an engine share a line
	device  []record.Submission // by EndedNS; BeganNS is set
	began   []int               // of device, by BeganNS
	reads   []record.Read       // by PlacedNS
	taken   []int               // of reads: those that a worker took, by BeganNS
	answers []record.Answer     // by EndedNS

	steps    map[uint64]*step
	requests []record.Request         // by EndedNS
	early    map[uint64][]record.Wait // of each request that is in no step yet, or of all (0), by EndedNS
	uses     map[use]*record.Use
	lastUse  map[place][]*record.Use // in order of time
	gone     map[place][]int64       // when an expert was evicted, in order of time

	longestSubmission, longestRead, longestWait int64
	stages                                      []string
	message                                     [256]kind
	sender                                      [256]string
	stepsOf                                     map[uint64][]*step // of a request, in order
}

// place names an expert.
type place struct{ layer, expert int32 }

// use names an expert that a step used.
type use struct {
	step uint64
	place
}

// step is what is known of one step.
type step struct {
	record.Step
	endedNS  int64 // 0: not known
	segments []record.Segment
	waits    []record.Wait
	handled  []int  // of index.handled
	before   uint64 // the last step before it that has one of its sequences; 0: none
}

// kind says what a message means for the walk.
type kind uint8

const (
	otherMessage kind = iota
	ticketDone
	expertsRead
	evalChunk
	expertsAnswered
)

var kinds = map[string]kind{"TicketDone": ticketDone, "ExpertsRead": expertsRead, "EvalChunk": evalChunk, "ExpertsAnswered": expertsAnswered}

// senders is which stage sends the messages that the walk follows.
var senders = map[string]string{
	"BeginLayer": "sequencer", "ReadLogits": "sequencer", "LayerRouted": "router", "PrefetchExperts": "router", "WaveResident": "expert-io",
	"PicksReady": "dispatch", "ScoresAhead": "dispatch", "WaveSubmitted": "dispatch", "LayerSubmitted": "dispatch", "LogitsReady": "dispatch", "StepRouted": "dispatch",
	"SlotsReleased": "combine", "LayerRetired": "combine",
}

func newIndex(rec *record.Recording) *index {
	x := &index{
		rec: rec, stages: rec.Meta.Stages, steps: make(map[uint64]*step), uses: make(map[use]*record.Use),
		lastUse: make(map[place][]*record.Use), gone: make(map[place][]int64),
		stepsOf: make(map[uint64][]*step), early: make(map[uint64][]record.Wait),
	}
	for i, name := range rec.Meta.Messages[:min(len(rec.Meta.Messages), 256)] {
		x.message[i], x.sender[i] = kinds[name], senders[name]
	}
	x.indexSteps()
	x.indexHandled()
	x.indexDevice()
	x.indexReads()
	x.indexExperts()
	x.answers = slices.Clone(rec.Answers)
	slices.SortStableFunc(x.answers, func(a, b record.Answer) int { return cmp.Compare(a.EndedNS, b.EndedNS) })
	x.requests = slices.Clone(rec.Requests)
	slices.SortStableFunc(x.requests, func(a, b record.Request) int { return cmp.Compare(a.EndedNS, b.EndedNS) })
	return x
}

func (x *index) indexSteps() {
	for _, s := range x.rec.Steps {
		x.steps[s.Step] = &step{Step: s}
	}
	for _, e := range x.rec.StepsEnded {
		if s := x.steps[e.Step]; s != nil {
			s.endedNS = e.EndedNS
		}
	}
	for _, g := range x.rec.Segments {
		if s := x.steps[g.Step]; s != nil {
			s.segments = append(s.segments, g)
		}
	}
	last := make(map[uint64]uint64) // of a sequence, its last step
	for _, s := range x.rec.Steps {
		t := x.steps[s.Step]
		for _, g := range t.segments {
			t.before = max(t.before, last[g.Seq])
			last[g.Seq] = s.Step
			x.stepsOf[g.Request] = append(x.stepsOf[g.Request], t)
		}
	}
	for _, w := range x.rec.Waits {
		x.longestWait = max(x.longestWait, w.EndedNS-w.BeganNS)
		if s := x.steps[w.Step]; s != nil {
			s.waits = append(s.waits, w)
		} else if w.Step == 0 {
			x.early[w.Request] = append(x.early[w.Request], w)
		}
	}
	for _, waits := range x.early {
		slices.SortStableFunc(waits, func(a, b record.Wait) int { return cmp.Compare(a.EndedNS, b.EndedNS) })
	}
}

func (x *index) indexHandled() {
	x.handled = slices.Clone(x.rec.Handled)
	slices.SortStableFunc(x.handled, func(a, b record.Handled) int { return cmp.Compare(a.BeganNS, b.BeganNS) })
	for i := range x.handled {
		if s := x.steps[x.handled[i].Step]; s != nil {
			s.handled = append(s.handled, i)
		}
	}
}

// indexDevice orders submissions, and estimates when those began of which the queue does not tell.
func (x *index) indexDevice() {
	x.device = slices.Clone(x.rec.Submissions)
	slices.SortStableFunc(x.device, func(a, b record.Submission) int { return cmp.Compare(a.EndedNS, b.EndedNS) })
	ends := make(map[uint8]int64) // of the last work of each device
	for i := range x.device {
		s := &x.device[i]
		free := ends[s.Device]
		if s.BeganNS == 0 {
			s.BeganNS = max(s.SubmittedNS, free)
			if s.DeviceNS > 0 {
				s.BeganNS = max(s.BeganNS, s.EndedNS-s.DeviceNS)
			}
			s.BeganNS = min(s.BeganNS, s.EndedNS)
		}
		ends[s.Device] = s.EndedNS
		x.longestSubmission = max(x.longestSubmission, s.EndedNS-s.BeganNS)
		x.began = append(x.began, i)
	}
	slices.SortStableFunc(x.began, func(a, b int) int { return cmp.Compare(x.device[a].BeganNS, x.device[b].BeganNS) })
}

func (x *index) indexReads() {
	x.reads = slices.Clone(x.rec.Reads)
	for i := range x.reads {
		r := &x.reads[i]
		r.PlacedNS = max(r.PlacedNS, r.EndedNS)
	}
	slices.SortStableFunc(x.reads, func(a, b record.Read) int { return cmp.Compare(a.PlacedNS, b.PlacedNS) })
	for i := range x.reads {
		if r := &x.reads[i]; r.BeganNS != 0 {
			x.longestRead = max(x.longestRead, r.EndedNS-r.BeganNS)
			x.taken = append(x.taken, i)
		}
	}
	slices.SortStableFunc(x.taken, func(a, b int) int { return cmp.Compare(x.reads[a].BeganNS, x.reads[b].BeganNS) })
}

func (x *index) indexExperts() {
	for i := range x.rec.Uses {
		u := &x.rec.Uses[i]
		p := place{u.Layer, u.Expert}
		x.uses[use{u.Step, p}] = u
		x.lastUse[p] = append(x.lastUse[p], u)
	}
	for _, e := range x.rec.Evictions {
		p := place{e.Layer, e.Expert}
		x.gone[p] = append(x.gone[p], e.AtNS)
	}
}

// covering returns the message before number that was being handled at t, or ended then; -1 if
// there was none. Of several at the same moment it is the last, and one of the wanted stage if
// there is one.
func (x *index) covering(t int64, number int, stage string) int {
	i, _ := slices.BinarySearchFunc(x.handled, t+1, func(h record.Handled, t int64) int { return cmp.Compare(h.BeganNS, t) })
	found := -1
	for i = min(i, number) - 1; i >= 0 && x.handled[i].EndedNS >= t; i-- {
		if found < 0 {
			found = i
		}
		if stage == "" || x.stage(x.handled[i].Stage) == stage {
			return i
		}
	}
	return found
}

// running calls f with the submissions that the device worked on within [from, to).
func (x *index) running(from, to int64, f func(s *record.Submission)) {
	i, _ := slices.BinarySearchFunc(x.began, from-x.longestSubmission, func(n int, t int64) int { return cmp.Compare(x.device[n].BeganNS, t) })
	for ; i < len(x.began); i++ {
		s := &x.device[x.began[i]]
		if s.BeganNS >= to {
			return
		}
		if s.EndedNS > from {
			f(s)
		}
	}
}

// reading calls f with the reads that workers were at within [from, to).
func (x *index) reading(from, to int64, f func(r *record.Read)) {
	i, _ := slices.BinarySearchFunc(x.taken, from-x.longestRead, func(n int, t int64) int { return cmp.Compare(x.reads[n].BeganNS, t) })
	for ; i < len(x.taken); i++ {
		r := &x.reads[x.taken[i]]
		if r.BeganNS >= to {
			return
		}
		if r.EndedNS > from {
			f(r)
		}
	}
}

// deviceOf returns which of several devices computes a layer.
func (x *index) deviceOf(layer int32) (n uint8) {
	for _, first := range x.rec.Meta.Engine.Borders {
		if int(layer) >= first {
			n++
		}
	}
	return n
}

// stage returns a stage's name.
func (x *index) stage(n uint8) string {
	if int(n) < len(x.stages) {
		return x.stages[n]
	}
	return "a stage"
}

// whose says for whom a step is, as it is told to others.
func (x *index) whose(id uint64) string {
	s := x.steps[id]
	if s == nil || len(s.segments) == 0 {
		return ""
	}
	if len(s.segments) > 1 {
		return "several sequences"
	}
	return sequenceName(s.segments[0].Seq)
}
