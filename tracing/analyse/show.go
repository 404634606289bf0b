package analyse

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Show is what a recording says by layer, by stage, by sequence and by token, what costs most
// first.
type Show struct {
	Model    string            `json:"model"`
	Program  string            `json:"program"`
	Reason   string            `json:"reason,omitempty"`
	Settings map[string]string `json:"settings,omitempty"`
	FromNS   int64             `json:"from_ns"`
	ToNS     int64             `json:"to_ns"`
	Steps    int               `json:"steps"`
	Tokens   int               `json:"tokens"`
	MedianNS int64             `json:"median_ns"` // of the wall times of tokens that were decoded

	Layers    []Layer     `json:"layers"`
	Stages    []StageWork `json:"stages"`
	Messages  []Message   `json:"messages"`
	Sequences []Sequence  `json:"sequences"`
	Slowest   []Token     `json:"slowest"`
	Waterfall *Waterfall  `json:"waterfall,omitempty"`
	Missing   Missing     `json:"missing"`
}

// Layer is what a layer took. The last one stands for the head.
type Layer struct {
	Layer int    `json:"layer"`
	Kind  string `json:"kind"`
	// CostNS is how much of the tokens' wall time the layer was on the critical path for; Causes
	// says with what.
	CostNS    int64   `json:"cost_ns"`
	Causes    []Share `json:"causes"`
	DeviceNS  int64   `json:"device_ns"` // that the device worked, on the critical path or not
	ReadNS    int64   `json:"read_ns"`   // of all reads; more than has passed if several ran at once
	ReadBytes int64   `json:"read_bytes"`
	Experts
	Guesses   int `json:"guesses"` // experts that hints named and that were not in memory
	Issued    int `json:"issued"`  // of them: read
	Wasted    int `json:"wasted"`  // of these: evicted without having been used
	Evictions int `json:"evictions"`
}

// StageWork is what a stage took of the line that all stages share.
type StageWork struct {
	Stage    string `json:"stage"`
	Messages int    `json:"messages"`
	BusyNS   int64  `json:"busy_ns"`
	WaitNS   int64  `json:"wait_ns"` // its messages lay in the mailbox
}

// Message is what the messages of one kind took in one stage.
type Message struct {
	Stage   string `json:"stage"`
	Message string `json:"message"`
	Count   int    `json:"count"`
	BusyNS  int64  `json:"busy_ns"`
	MostNS  int64  `json:"most_ns"` // of one of them
	WaitNS  int64  `json:"wait_ns"`
}

// Sequence is what a sequence was given, and what that cost.
type Sequence struct {
	Seq    uint64  `json:"sequence"`
	Tokens int     `json:"tokens"`
	Rows   int     `json:"rows"`
	WallNS int64   `json:"wall_ns"`
	Causes []Share `json:"causes"`
	// DeviceNS and ReadBytes are its share, by rows, of what its steps took: reads are those that
	// its steps asked for on demand, or on a guess that came true for them.
	DeviceNS  int64 `json:"device_ns"`
	ReadBytes int64 `json:"read_bytes"`
	// ForNS is how long other requests waited for its steps.
	ForNS int64 `json:"others_waited_ns"`
}

// slowest is how many of the slowest tokens are shown.
const slowest = 10

// ShowAll sums a recording up. The waterfall is that of a token, or, if token is 0, of the slowest
// one that was decoded.
func ShowAll(rec *record.Recording, token int) (*Show, error) {
	x := newIndex(rec)
	all := x.tokens()
	shown, err := chosen(all, token)
	if err != nil && token != 0 {
		return nil, err
	}
	m := &rec.Meta
	s := &Show{Model: m.Model.Name, Program: m.Program, Reason: m.Reason, Settings: m.Settings, Steps: len(rec.Steps), Tokens: len(all), Missing: Missing{rec.Forgotten, rec.Cut}}
	s.FromNS, s.ToNS = x.extent()
	s.MedianNS = median(decoded(all))
	s.Layers, s.Sequences = x.layers(all), x.sequences(all)
	s.Stages, s.Messages = x.stagesAndMessages()
	s.Slowest = slices.Clone(all)
	slices.SortStableFunc(s.Slowest, func(a, b Token) int { return cmp.Compare(b.WallNS, a.WallNS) })
	s.Slowest = s.Slowest[:min(slowest, len(s.Slowest))]
	if shown != nil {
		s.Waterfall = x.waterfall(shown)
	}
	return s, nil
}

// decoded returns the wall times of tokens that were decoded, not read with a prompt.
func decoded(all []Token) (ns []int64) {
	for i := range all {
		if all[i].Rows == 1 && all[i].Outcome == outcomes[record.Answered] {
			ns = append(ns, all[i].WallNS)
		}
	}
	return ns
}

// median returns the middle of some numbers; 0 of none.
func median(ns []int64) int64 {
	if len(ns) == 0 {
		return 0
	}
	ns = slices.Sorted(slices.Values(ns))
	return (ns[(len(ns)-1)/2] + ns[len(ns)/2]) / 2
}

// extent returns when the first and the last thing of the recording happened.
func (x *index) extent() (from, to int64) {
	look := func(a, b int64) {
		if a > 0 && (from == 0 || a < from) {
			from = a
		}
		to = max(to, b)
	}
	for i := range x.handled {
		look(x.handled[i].BeganNS, x.handled[i].EndedNS)
	}
	for i := range x.device {
		look(x.device[i].SubmittedNS, x.device[i].EndedNS)
	}
	for i := range x.reads {
		look(x.reads[i].AskedNS, x.reads[i].PlacedNS)
	}
	return from, to
}

// stagesAndMessages sums up what stages handled, what took most first.
func (x *index) stagesAndMessages() ([]StageWork, []Message) {
	type key struct{ stage, message uint8 }
	stages, messages := make(map[uint8]*StageWork), make(map[key]*Message)
	for i := range x.handled {
		h := &x.handled[i]
		s, m := stages[h.Stage], messages[key{h.Stage, h.Message}]
		if s == nil {
			s = &StageWork{Stage: x.stage(h.Stage)}
			stages[h.Stage] = s
		}
		if m == nil {
			m = &Message{Stage: s.Stage, Message: x.messageName(h.Message)}
			messages[key{h.Stage, h.Message}] = m
		}
		took, waited := h.EndedNS-h.BeganNS, max(0, h.BeganNS-h.SentNS)
		if h.SentNS == 0 {
			waited = 0
		}
		s.Messages, s.BusyNS, s.WaitNS = s.Messages+1, s.BusyNS+took, s.WaitNS+waited
		m.Count, m.BusyNS, m.WaitNS, m.MostNS = m.Count+1, m.BusyNS+took, m.WaitNS+waited, max(m.MostNS, took)
	}
	var ss []StageWork
	for _, s := range stages {
		ss = append(ss, *s)
	}
	slices.SortFunc(ss, func(a, b StageWork) int {
		return cmp.Or(cmp.Compare(b.BusyNS, a.BusyNS), cmp.Compare(a.Stage, b.Stage))
	})
	var mm []Message
	for _, m := range messages {
		mm = append(mm, *m)
	}
	slices.SortFunc(mm, func(a, b Message) int {
		return cmp.Or(cmp.Compare(b.BusyNS, a.BusyNS), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Message, b.Message))
	})
	return ss, mm
}

func (x *index) messageName(n uint8) string {
	if int(n) < len(x.rec.Meta.Messages) {
		return x.rec.Meta.Messages[n]
	}
	return fmt.Sprintf("message %d", n)
}
