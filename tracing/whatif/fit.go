package whatif

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// observed is what a recording tells of the machine.
type observed struct {
	since int64     // laws are of what came later
	known []float64 // chances of experts from earlier runs, or nil
	steps map[uint64]*step
	laws  laws
	mix   [record.SharedExpert + 1]byRows // what parts take where it was not recorded
	waves [2]waveLaw                      // of few rows, and of many

	begun map[opOf]float64 // from submission to begin of operations that another goroutine woke the device for

	works []float64            // of the reads in order of asking, in usual reads
	first map[uint64]int       // of a step's reads in works
	depth int                  // the most reads that ran at once
	same  map[readOf][]float64 // works of the reads of one name, in order
	used  map[readOf]int       // of these, by the replay
	lags  map[readOf]float64   // from asking to beginning, of reads that no other kept waiting
	count map[uint64]int       // reads that the replay has asked for, by the recorded step
}

// fewRows is the most rows of a step whose waves follow the law of few rows.
const fewRows = 16

// observe reads a recording.
func observe(r *record.Recording) *observed {
	busy := newBusy(r.Reads)
	o := &observed{steps: stepsOf(r), first: make(map[uint64]int), count: make(map[uint64]int), same: make(map[readOf][]float64), lags: make(map[readOf]float64), since: begins(r), known: chances(r), begun: make(map[opOf]float64)}
	o.laws.slowed = slowed(r, busy, o.since)
	o.unslow(r, busy)
	o.messages(r)
	o.begins(r)
	o.reads(r)
	o.device()
	return o
}

// unslow takes from the recorded times what reads have added to them.
func (o *observed) unslow(r *record.Recording, busy busy) {
	if o.laws.slowed == 0 {
		return
	}
	next := make(map[[2]uint64]int)
	for i := range r.Submissions {
		b := &r.Submissions[i]
		s := o.steps[b.Step]
		if s == nil || b.BeganNS == 0 || b.EndedNS <= b.BeganNS {
			continue
		}
		// While something is read, 1 in 1+slowed of what is otherwise done in a time is done.
		f := 1 - busy.share(b.BeganNS, b.EndedNS)*o.laws.slowed/(1+o.laws.slowed)
		if b.Part == record.Head {
			s.headNS *= f
			continue
		}
		if int(b.Layer) >= len(s.layers) {
			continue
		}
		switch l := &s.layers[b.Layer]; b.Part {
		case record.Mix, record.Layers:
			l.mixNS *= f
		case record.Ahead:
			l.aheadNS *= f
		case record.SharedExpert:
			l.shareNS *= f
		case record.Experts:
			key := [2]uint64{b.Step, uint64(b.Layer)}
			l.waves[next[key]].ns *= f
			next[key]++
		}
	}
}

// messages finds what it takes to handle a message of each kind, and to come to the next.
func (o *observed) messages(r *record.Recording) {
	var sum, n [stages.NumStages][stages.NumKinds]float64
	stage, kind := numbers(r.Meta.Stages, stageNames()), numbers(r.Meta.Messages, kindNames())
	gap, gaps := 0.0, 0.0
	for i := range r.Handled {
		h := &r.Handled[i]
		s, k := lookUp(stage, h.Stage), lookUp(kind, h.Message)
		if s < 0 || k < 0 || h.BeganNS <= o.since {
			continue
		}
		sum[s][k] += float64(h.EndedNS - h.BeganNS)
		n[s][k]++
		if i > 0 {
			p := &r.Handled[i-1]
			if d := h.BeganNS - p.EndedNS; h.SentNS > 0 && h.SentNS <= p.EndedNS && d >= 0 {
				gap, gaps = gap+float64(d), gaps+1
			}
		}
	}
	for s := range sum {
		for k := range sum[s] {
			if n[s][k] > 0 {
				o.laws.message[s][k] = sum[s][k]/n[s][k] + gap/max(gaps, 1)
			}
		}
	}
}

func stageNames() (names []string) {
	for s := range stages.StageID(stages.NumStages) {
		names = append(names, s.String())
	}
	return names
}

func kindNames() (names []string) {
	for k := range stages.NumKinds {
		names = append(names, k.String())
	}
	return names
}

// numbers returns, for each name of a recording, its number in this program, or -1.
func numbers(of, here []string) []int {
	var n []int
	for _, name := range of {
		n = append(n, slices.Index(here, name))
	}
	return n
}

func lookUp(n []int, i uint8) int {
	if int(i) < len(n) {
		return n[i]
	}
	return -1
}

// chances returns what a run that began with counts of earlier runs knew of experts, as far as the
// reads of its warm start tell: their order. nil if there were none.
func chances(r *record.Recording) []float64 {
	if !r.Meta.Engine.Profile {
		return nil
	}
	var warm []int
	for i := range r.Reads {
		if d := &r.Reads[i]; d.Step == 0 && d.Hint == 0 {
			warm = append(warm, int(d.Layer)*r.Meta.Model.Experts+int(d.Expert))
		}
	}
	if len(warm) == 0 {
		return nil
	}
	c := make([]float64, r.Meta.Model.Layers*r.Meta.Model.Experts)
	for i, key := range warm {
		c[key] = 0.5 * float64(len(warm)-i) / float64(len(warm))
	}
	return c
}

// runs is who ran the line when: a run lasts until it is empty.
type runs struct {
	from, to []int64
	device   []bool // the device's goroutine ran it
}

func newRuns(r *record.Recording) (v runs) {
	ticket := slices.Index(r.Meta.Messages, stages.KindTicketDone.String())
	for i := range r.Handled {
		h := &r.Handled[i]
		if k := len(v.to) - 1; k >= 0 && h.BeganNS <= v.to[k] {
			v.to[k] = h.EndedNS
			continue
		}
		v.from, v.to, v.device = append(v.from, h.BeganNS), append(v.to, h.EndedNS), append(v.device, int(h.Message) == ticket)
	}
	return v
}

// at returns the run that a time is in, or -1.
func (v *runs) at(ns int64) int {
	k, _ := slices.BinarySearch(v.from, ns+1)
	if k == 0 || v.to[k-1] < ns {
		return -1
	}
	return k - 1
}

// opOf names an operation of a recorded step.
type opOf struct {
	step        uint64
	layer, wave int32
	part        record.Part
}

// starts returns how long the device takes to begin an operation when it was idle. s is the
// recorded step that its step is, or nil.
func (o *observed) starts(op *operation, s *step, woken bool) float64 {
	if !woken {
		return o.laws.device[0]
	}
	if s != nil {
		if ns, ok := o.begun[opOf{s.id, int32(op.step.Layer), int32(op.wave), op.part}]; ok {
			return ns
		}
	}
	return o.laws.device[1]
}

// begins finds how long the device takes to begin after it was idle: when its own goroutine comes
// back from the line, and when another one wakes it.
func (o *observed) begins(r *record.Recording) {
	line := newRuns(r)
	subs := slices.Clone(r.Submissions)
	slices.SortFunc(subs, func(a, b record.Submission) int { return cmp.Compare(a.BeganNS, b.BeganNS) })
	var took [2][]float64
	var ended int64
	for i := range subs {
		b := &subs[i]
		if b.BeganNS == 0 {
			continue
		}
		k := line.at(b.SubmittedNS)
		switch {
		case k < 0 || b.SubmittedNS < ended || b.SubmittedNS < o.since:
		case !line.device[k]:
			lag := float64(b.BeganNS - b.SubmittedNS)
			took[1] = append(took[1], lag)
			o.begun[opOf{b.Step, b.Layer, b.Wave, b.Part}] = lag
		case b.BeganNS >= line.to[k]:
			took[0] = append(took[0], float64(b.BeganNS-line.to[k]))
		}
		ended = max(ended, b.EndedNS)
	}
	for i := range took {
		o.laws.device[i] = trimmed(took[i])
	}
}

// trimmed returns the mean of all but the largest twentieth.
func trimmed(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	v = v[:len(v)-len(v)/20]
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
