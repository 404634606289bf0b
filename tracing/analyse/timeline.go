package analyse

import (
	"fmt"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// The groups of tracks of a timeline, which viewers call processes.
const (
	sequencesGroup = 1 + iota
	stepsGroup
	stagesGroup
	deviceGroup
	disksGroup
	waitsGroup
	countersGroup
)

var groups = []string{sequencesGroup: "sequences", stepsGroup: "steps", stagesGroup: "stages", deviceGroup: "device", disksGroup: "reads", waitsGroup: "waits", countersGroup: "counters"}

// entry is something that a timeline shows.
type entry struct {
	name, cat, phase string // the phases of the Trace Event Format
	ns, dur          int64
	group, track     int
	id               string
	args             map[string]any
}

// timeline goes through a recording and emits what lies in a time.
type timeline struct {
	x        *index
	emit     func(*entry)
	from, to int64
	lanes    [][2]int // of each read: its group and its track, or 0, 0
}

// trackID is what a viewer knows a track by. Perfetto's trace processor takes 0 for the group's own
// number, so that two tracks would become one, and numbers are no group's.
func trackID(group, track int) int { return group<<20 + track + 1 }

// newTimeline returns a timeline of a token, or, if that is 0, of all.
func newTimeline(x *index, tokens []Token, token int) (*timeline, error) {
	t := &timeline{x: x, to: math.MaxInt64}
	if token != 0 {
		k, err := tokenOf(tokens, token)
		if err != nil {
			return nil, err
		}
		t.from, t.to = k.FromNS, k.FromNS+k.WallNS
	}
	return t, nil
}

// draw emits everything.
func (t *timeline) draw(tokens []Token) {
	for id := sequencesGroup; id < len(groups); id++ {
		t.meta("process_name", id, 0, map[string]any{"name": groups[id]})
		t.meta("process_sort_index", id, 0, map[string]any{"sort_index": id})
	}
	t.sequences(tokens)
	t.steps()
	t.stages()
	t.device()
	t.reads()
	t.flows()
	t.waits()
	t.counters()
}

func (t *timeline) meta(name string, group, track int, args map[string]any) {
	t.emit(&entry{name: name, phase: "M", group: group, track: track, args: args})
}

// track names a track. Viewers show tracks in the order of their numbers.
func (t *timeline) track(group, track int, name string) {
	t.meta("thread_name", group, trackID(group, track), map[string]any{"name": name})
	t.meta("thread_sort_index", group, trackID(group, track), map[string]any{"sort_index": track})
}

// slice draws something that took time, at least a nanosecond: arrows end at what has a length.
func (t *timeline) slice(group, track int, name, cat string, from, to int64, args map[string]any) {
	if t.shows(from, to) {
		t.emit(&entry{name: name, cat: cat, phase: "X", ns: from, dur: max(1, to-from), group: group, track: trackID(group, track), args: args})
	}
}

// shows reports whether the timeline has something that took a time.
func (t *timeline) shows(from, to int64) bool { return from < t.to && to > t.from }

// sequences draws tokens, and below them what they spent their time on.
func (t *timeline) sequences(tokens []Token) {
	tracks, ends := make(map[uint64]int), make(map[uint64]int64)
	for i := range tokens {
		k := &tokens[i]
		at, ok := tracks[k.Seq]
		if !ok {
			at = 2 * len(tracks)
			tracks[k.Seq] = at
			t.track(sequencesGroup, at, sequenceName(k.Seq))
			t.track(sequencesGroup, at+1, sequenceName(k.Seq)+": critical path")
		}
		from := max(k.FromNS, ends[k.Seq]) // a request may come before the one before it is answered
		ends[k.Seq] = max(ends[k.Seq], k.FromNS+k.WallNS)
		t.slice(sequencesGroup, at, fmt.Sprintf("token %d", k.Token), "token", from, k.FromNS+k.WallNS,
			map[string]any{"request": k.Request, "position": k.Pos, "rows": k.Rows, "outcome": k.Outcome, "wall_ns": k.WallNS})
		for _, p := range k.Pieces {
			if p.ToNS > from {
				t.slice(sequencesGroup, at+1, p.Cause.String(), "cause", max(p.FromNS, from), p.ToNS, map[string]any{"layer": p.Layer, "where": p.Where})
			}
		}
	}
}

func (t *timeline) steps() {
	lanes := make(map[uint8]bool)
	for _, s := range t.x.rec.Steps {
		if !lanes[s.Lane] {
			lanes[s.Lane] = true
			t.track(stepsGroup, int(s.Lane), fmt.Sprintf("lane %d", s.Lane))
		}
		st := t.x.steps[s.Step]
		if st.endedNS == 0 {
			continue
		}
		kind := "prompt step"
		if s.Decode > 0 {
			kind = "decode step"
		}
		var requests []uint64
		for _, g := range st.segments {
			requests = append(requests, g.Request)
		}
		t.slice(stepsGroup, int(s.Lane), fmt.Sprintf("%s %d", kind, s.Step), "step", s.BeganNS, st.endedNS, map[string]any{"rows": s.Rows, "requests": requests})
	}
}

func (t *timeline) stages() {
	for i, name := range t.x.stages {
		t.track(stagesGroup, i, name)
	}
	for i := range t.x.handled {
		h := &t.x.handled[i]
		t.slice(stagesGroup, int(h.Stage), t.x.messageName(h.Message), "message", h.BeganNS, h.EndedNS,
			map[string]any{"step": h.Step, "layer": h.Layer, "wave": h.Wave, "in_mailbox_ns": max(0, h.BeganNS-h.SentNS)})
	}
}

// queue returns the track of a submission.
func queue(s *record.Submission) int { return 2*int(s.Device) + 1 - int(min(s.Urgent, 1)) }

func (t *timeline) device() {
	devices := len(t.x.rec.Meta.Engine.Borders) + 1
	for i := range devices {
		of := ""
		if devices > 1 {
			of = fmt.Sprintf("device %d, ", i+1)
		}
		t.track(deviceGroup, 2*i, of+"urgent queue: decode steps")
		t.track(deviceGroup, 2*i+1, of+"ordinary queue: prompts")
	}
	for i := range t.x.device {
		s := &t.x.device[i]
		name := parts[min(int(s.Part), len(parts)-1)]
		if s.Layer >= 0 && s.Part != record.Head {
			name = fmt.Sprintf("%s of layer %d", name, s.Layer)
		}
		t.slice(deviceGroup, queue(s), name, "submission", s.BeganNS, s.EndedNS, map[string]any{
			"step": s.Step, "layer": s.Layer, "further_layers": s.More, "wave": s.Wave, "experts": s.Uses, "waited_ns": s.BeganNS - s.SubmittedNS, "device_ns": s.DeviceNS, "paused_ns": s.PausedNS,
		})
	}
}

// reads draws each read on the first reader that is free, which is not always the one that did it.
func (t *timeline) reads() {
	t.lanes = make([][2]int, len(t.x.reads))
	var free []int64
	for _, i := range t.x.taken {
		r := &t.x.reads[i]
		at := slices.IndexFunc(free, func(ns int64) bool { return ns <= r.BeganNS })
		if at < 0 {
			at = len(free)
			free = append(free, 0)
			t.track(disksGroup, at, fmt.Sprintf("reader %d", at+1))
		}
		free[at] = max(r.EndedNS, r.BeganNS+1)
		t.lanes[i] = [2]int{disksGroup, at}
		kind := "read"
		if r.Hint != 0 {
			kind = "guess"
		}
		t.slice(disksGroup, at, fmt.Sprintf("layer %d expert %d", r.Layer, r.Expert), kind, r.BeganNS, r.EndedNS, map[string]any{
			"step": r.Step, "hint": r.Hint, "in_line_ns": r.BeganNS - r.AskedNS, "upload_ns": r.PlacedNS - r.EndedNS, "bytes": r.Bytes, "slot": r.Slot, "failed": r.Failed != 0,
		})
	}
}
