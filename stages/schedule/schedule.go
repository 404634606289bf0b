package schedule

import "slices"

// Request is what the schedule must know of a chunk that is ready for a step.
type Request interface {
	comparable
	// Left returns how many rows are still to be computed, at least 1.
	Left() int
	// Alone reports whether the request must have a step to itself.
	Alone() bool
	// Key names who shares the rows of prompts with others. It does not change.
	Key() string
	// Weight is the weight of the key's share; what was said last counts.
	Weight() int
}

// Kind says what the rows of a step are.
type Kind uint8

// The kinds.
const (
	Decode Kind   = iota // single rows, whose sequences wait for their next token
	Prompt               // pieces of longer chunks
	Kinds  = iota        // how many there are
)

// Share is the next rows of a request that a step takes.
type Share[R Request] struct {
	Request R
	Rows    int
}

// Config sizes a schedule.
type Config struct {
	Rows   int // most of a step
	Steps  int // most steps of one kind at once; there is room for one more of the other kind
	Layers int // of the model
	// Share is the share of time that prompts get while a sequence decodes, above 0 and at most 1.
	// At 1 a decode step goes only between two prompt steps.
	Share float64
	// Preempts means that the device runs decode steps amid what has begun of prompt steps.
	Preempts bool
	// Parts is how many devices compute the layers of a step one after the other; 0 means 1. Of
	// several, sequences that decode have steps of their own from the start: while one step is with
	// one device, another is with the next.
	Parts int
}

// Schedule is the requests that are in no step, the sequences that are likely to bring one at once,
// and whose turn it is.
type Schedule[R Request] struct {
	cfg    Config
	ready  [Kinds][]R // in order of arrival
	lines  lines
	waits  waits
	pace   pace
	apart  apart
	why    [Kinds]Why // of the last Next
	shares []Share[R] // memory for the next answer of Next
}

// New returns an empty schedule.
func New[R Request](cfg Config) Schedule[R] {
	p := pace{layers: cfg.Layers, preempts: cfg.Preempts, stretch: promptsFirst, given: 1}
	if cfg.Share < 1 {
		p.stretch = min(1/(1-cfg.Share), promptsFirst/2)
	}
	return Schedule[R]{cfg: cfg, pace: p, apart: newApart(cfg.Parts > 1), waits: waits{away: make(map[uint64]int64), takes: make(map[uint64]int64)}, lines: lines{of: make(map[string]*line)}}
}

// kindOf returns the kind of step that a request needs next.
func kindOf[R Request](r R) Kind {
	if r.Left() == 1 {
		return Decode
	}
	return Prompt
}

// Add makes a request ready, as the last one.
func (s *Schedule[R]) Add(r R) { s.AddAt(s.Ready(), r) }

// AddAt makes a request ready in place at of those of its kind, or as the last one if there are
// fewer.
func (s *Schedule[R]) AddAt(at int, r R) {
	k := kindOf(r)
	s.ready[k] = slices.Insert(s.ready[k], min(at, len(s.ready[k])), r)
	if k == Prompt {
		s.lines.join(r.Key(), r.Weight())
	}
}

// Remove takes back a request. It does nothing if the request is not ready.
func (s *Schedule[R]) Remove(r R) {
	k := kindOf(r)
	i := slices.Index(s.ready[k], r)
	if i < 0 {
		return
	}
	s.ready[k] = slices.Delete(s.ready[k], i, i+1)
	if k == Prompt {
		s.lines.leave(s.lines.of[r.Key()])
	}
}

// Ready returns how many requests are ready.
func (s *Schedule[R]) Ready() int { return len(s.ready[Decode]) + len(s.ready[Prompt]) }

// Next returns the shares of a step that is to be formed now, and takes their requests, which are
// ready again only by Add. id names the step. It returns none if nothing is ready, if there is no
// room, or if what is ready should wait. The shares are the schedule's until the next call.
func (s *Schedule[R]) Next(id uint64) (k Kind, shares []Share[R]) {
	s.lines.settle()
	s.why = [Kinds]Why{}
	switch {
	case s.may(Decode):
		k, s.shares, s.waits.over = Decode, s.takeDecode(), false
	case s.may(Prompt):
		k, s.shares = Prompt, s.takePrompts(id)
	default:
		return 0, nil
	}
	rows := 0
	for _, sh := range s.shares {
		rows += sh.Rows
	}
	s.pace.steps = append(s.pace.steps, running{id: id, kind: k, rows: rows, measured: true})
	return k, s.shares
}

// decodeRows is how many rows the next decode step is expected to have.
func (s *Schedule[R]) decodeRows() int {
	return max(1, min(len(s.ready[Decode])+len(s.waits.seqs), s.cfg.Rows))
}

// takeDecode takes single rows in order of arrival.
func (s *Schedule[R]) takeDecode() []Share[R] {
	shares, most := s.shares[:0], s.together()
	rest := s.ready[Decode][:0]
	for _, r := range s.ready[Decode] {
		if len(shares) == most || len(shares) > 0 && (r.Alone() || shares[0].Request.Alone()) {
			rest = append(rest, r)
			continue
		}
		shares = append(shares, Share[R]{r, 1})
	}
	clear(s.ready[Decode][len(rest):])
	s.ready[Decode] = rest
	return shares
}

// takePrompts takes pieces of prompts.
func (s *Schedule[R]) takePrompts(id uint64) []Share[R] {
	room := s.cfg.Rows
	if !s.pace.preempts && s.Decodes() {
		room = s.pace.promptRows(room, s.decodeRows())
	}
	return s.divide(id, room)
}

// Decodes reports whether somebody decodes, or has lately.
func (s *Schedule[R]) Decodes() bool {
	return len(s.ready[Decode]) > 0 || len(s.waits.seqs) > 0 || s.pace.count(Decode) > 0 ||
		len(s.waits.away) > 0 && s.pace.recent()
}
