package live

import (
	"maps"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// mostTexts bounds the sequences of which something is known.
const mostTexts = 4096

// Text is what the engine's records say of a sequence.
type Text struct {
	ArrivedNS int64 // its first request that is known
	BeganNS   int64 // the first step with rows of that
	EndedNS   int64 // the last step that ended
	From      int32 // the position of the first row that is known: what was there before was not read
	Done      int32 // positions that are evaluated
	Answered  int   // requests for one row, and for a prompt
	Cost      Cost
}

// texts is what is known of sequences.
type texts struct {
	all map[uint64]*Text
	in  map[uint64][]run // of a step under way
}

// run is the rows of a sequence in a step.
type run struct {
	seq uint64
	end int32
}

func (t *texts) init() { t.all, t.in = make(map[uint64]*Text), make(map[uint64][]run) }

// Sequence returns what is known of a sequence; nil if no step has had a row of it.
func (v *View) Sequence(seq uint64) *Text { return v.texts.all[seq] }

func (t *texts) segment(s *record.Segment, step *flying) {
	one := t.all[s.Seq]
	if one == nil {
		t.makeRoom()
		one = &Text{ArrivedNS: s.ArrivedNS, From: s.Pos, Done: s.Pos}
		if step != nil {
			one.BeganNS = step.BeganNS
		}
		t.all[s.Seq] = one
	}
	if len(t.in) > mostKeptSteps {
		clear(t.in)
	}
	t.in[s.Step] = append(t.in[s.Step], run{s.Seq, s.Pos + s.Rows})
}

func (t *texts) ended(e *record.StepEnded) {
	for _, r := range t.in[e.Step] {
		if one := t.all[r.seq]; one != nil && e.Failed == 0 {
			one.Done, one.EndedNS = max(one.Done, r.end), e.EndedNS
		}
	}
	delete(t.in, e.Step)
}

func (t *texts) request(r *record.Request) {
	one := t.all[r.Seq]
	if one == nil {
		return
	}
	if r.Outcome == record.Answered {
		one.Answered++
	}
	c := &one.Cost
	c.Hit, c.Late, c.Missed = c.Hit+int64(r.Hit), c.Late+int64(r.Late), c.Missed+int64(r.Missed)
	c.DiskBytes, c.DeviceUS, c.DiskWaitUS = c.DiskBytes+r.DiskBytes, c.DeviceUS+us(r.DeviceNS), c.DiskWaitUS+us(r.DiskWaitNS)
}

// makeRoom forgets the older half of too many sequences.
func (t *texts) makeRoom() {
	if len(t.all) < mostTexts {
		return
	}
	for _, seq := range slices.Sorted(maps.Keys(t.all))[:mostTexts/2] {
		delete(t.all, seq)
	}
}
