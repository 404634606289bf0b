package whatif

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Result is what a run came to; where experts were forgotten, what it came to since.
type Result struct {
	DecodeRate float64 `json:"decode_tokens_per_s"` // of all texts together, while one decodes
	PromptRate float64 `json:"prompt_tokens_per_s"` // while a prompt is read; 0: there was none
	Tokens     int     `json:"tokens"`              // decoded
	PromptRows int     `json:"prompt_rows"`
	WallNS     int64   `json:"wall_ns"` // from the first request to the last answer
	Uses       int64   `json:"uses"`    // of experts
	Hits       int64   `json:"hits"`    // of those: in memory, or being read
	Reads      int64   `json:"reads"`
	Bytes      int64   `json:"bytes"` // read
	// where the time went, of WallNS
	DeviceNS int64 `json:"device_ns"` // the device computed
	DiskNS   int64 `json:"disk_ns"`   // something was read
	// the device stood still, in a replay only: for experts, for messages and rings, for callers
	ForExpertsNS int64 `json:"for_experts_ns,omitempty"`
	ForStagesNS  int64 `json:"for_stages_ns,omitempty"`
	ForCallersNS int64 `json:"for_callers_ns,omitempty"`
}

// HitRate is the share of uses that found their expert in memory or on its way there.
func (r Result) HitRate() float64 { return float64(r.Hits) / float64(max(1, r.Uses)) }

// span is a request's time, and that until the next one of its sequence.
type span struct {
	from, to int64
	rows     int
}

// rates fills in how fast spans were worked off. Decoding lasts from a request for one row until
// the sequence's next request.
func (r *Result) rates(spans []span) {
	var decode, prompt []span
	for _, s := range spans {
		if s.rows == 1 {
			decode = append(decode, s)
			r.Tokens++
		} else {
			prompt = append(prompt, s)
			r.PromptRows += s.rows
		}
	}
	if ns := union(decode); ns > 0 {
		r.DecodeRate = float64(r.Tokens) / float64(ns) * 1e9
	}
	if ns := union(prompt); ns > 0 {
		r.PromptRate = float64(r.PromptRows) / float64(ns) * 1e9
	}
	if len(spans) > 0 {
		from, to := spans[0].from, spans[0].to
		for _, s := range spans {
			from, to = min(from, s.from), max(to, s.to)
		}
		r.WallNS = to - from
	}
}

// union returns how long at least one of the spans lasted.
func union(spans []span) (ns int64) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var to int64
	for i, s := range spans {
		if i == 0 || s.from > to {
			ns += s.to - s.from
			to = s.to
		} else if s.to > to {
			ns += s.to - to
			to = s.to
		}
	}
	return ns
}

// Measure returns what a recorded run came to.
func Measure(r *record.Recording) Result {
	return measured(r, newScript(r, stepsOf(r)))
}

func measured(r *record.Recording, s *script) Result {
	var out Result
	out.rates(s.recorded(r))
	since := begins(r)
	for _, u := range r.Uses {
		if u.AtNS < since {
			continue
		}
		out.Uses++
		if u.Found != record.Missing {
			out.Hits++
		}
	}
	var reads []record.Read
	for _, d := range r.Reads {
		if d.AskedNS >= since {
			reads = append(reads, d)
			out.Bytes += d.Bytes
		}
	}
	out.Reads = int64(len(reads))
	b := newBusy(reads)
	if k := len(b.to) - 1; k >= 0 {
		out.DiskNS = b.sum[k] + b.to[k] - b.from[k]
	}
	for i := range r.Submissions {
		if s := &r.Submissions[i]; s.BeganNS > since {
			out.DeviceNS += s.EndedNS - s.BeganNS - s.PausedNS
		}
	}
	return out
}

// recorded returns the spans of the recorded requests.
func (s *script) recorded(r *record.Recording) []span {
	var spans []span
	rows := make(map[uint64]int)
	for _, g := range r.Segments {
		rows[g.Request] += int(g.Rows)
	}
	newest, since := make(map[uint64]int), begins(r) // newest by sequence
	requests := slices.Clone(r.Requests)
	slices.SortStableFunc(requests, func(a, b record.Request) int { return cmp.Compare(a.ArrivedNS, b.ArrivedNS) })
	for _, q := range requests {
		if n := rows[q.Request]; n > 0 && q.ArrivedNS >= since {
			spans = follow(spans, newest, q.Seq, span{q.ArrivedNS, q.EndedNS, n})
		}
	}
	return spans
}

// follow appends a span, until which the one before of its sequence lasts.
func follow(spans []span, newest map[uint64]int, seq uint64, s span) []span {
	if i, ok := newest[seq]; ok && spans[i].rows == 1 {
		spans[i].to = max(spans[i].to, s.from)
	}
	newest[seq] = len(spans)
	return append(spans, s)
}

// replayed returns the spans of a replay.
func (s *script) replayed() []span {
	var spans []span
	newest := make(map[uint64]int)
	asks := slices.Clone(s.asks)
	slices.SortStableFunc(asks, func(a, b *ask) int { return cmp.Compare(a.arrived, b.arrived) })
	for _, a := range asks {
		if a.forget {
			spans, newest = nil, make(map[uint64]int)
			continue
		}
		spans = follow(spans, newest, uint64(a.seq), span{a.arrived, a.endedNS, len(a.rows)})
	}
	return spans
}

// result returns what a replay came to.
func (r *replay) result() (Result, error) {
	var out Result
	out.rates(r.callers.script.replayed())
	out.ForExpertsNS, out.ForStagesNS, out.ForCallersNS = r.e.idle.experts, r.e.idle.stages, r.e.idle.callers
	out.DeviceNS, out.DiskNS = r.e.idle.device, r.e.idle.disk
	st, err := r.stats()
	if err != nil {
		return out, err
	}
	for i := range st.Layers {
		l := st.Layers[i]
		if b := r.callers.before; b != nil {
			l.Hits, l.Misses, l.BytesRead = l.Hits-b.Layers[i].Hits, l.Misses-b.Layers[i].Misses, l.BytesRead-b.Layers[i].BytesRead
		}
		out.Uses, out.Hits, out.Bytes = out.Uses+l.Hits+l.Misses, out.Hits+l.Hits, out.Bytes+l.BytesRead
	}
	if n := r.e.bytes; n > 0 {
		out.Reads = out.Bytes / n
	}
	return out, nil
}

// idle is where simulated time goes.
type idle struct {
	device, disk, experts, stages, callers int64
	lacking                                map[stages.StepID]bool // steps with a layer that lacks experts
	steps                                  map[stages.StepID]bool // under way
}

// pass notes that nothing happens until a time.
func (i *idle) pass(e *engine, until int64) {
	ns := until - e.now
	if ns <= 0 {
		return
	}
	if len(e.disk.running) > 0 {
		i.disk += ns
	}
	switch {
	case e.device.current != nil:
		begins := min(max(e.device.current.beganNS-e.now, 0), ns)
		i.stages += begins
		i.device += ns - begins
	case len(i.lacking) > 0 && !e.running:
		i.experts += ns
	case len(i.steps) > 0 || e.running:
		i.stages += ns
	default:
		i.callers += ns
	}
}

// note follows what the stages make of a message.
func (i *idle) note(in stages.Message, out *stages.Outbox) {
	if i.lacking == nil {
		i.lacking, i.steps = make(map[stages.StepID]bool), make(map[stages.StepID]bool)
	}
	for _, s := range out.Sends {
		switch m := s.Msg.(type) {
		case *stages.BeginLayer:
			i.steps[m.ID] = true
		case *stages.LayerRouted:
			i.lacking[m.ID] = true
		case *stages.WaveResident:
			if m.Last {
				delete(i.lacking, m.ID)
			}
		}
	}
	if len(out.Answers) > 0 && in.Head() != nil {
		delete(i.steps, in.Head().ID)
	}
}
