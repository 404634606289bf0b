package schedule

// Why says why requests that are ready are in no step.
type Why uint8

// The reasons.
const (
	Nothing   Why = iota // they go, or there are none
	Room                 // the steps under way let no other one begin
	OtherKind            // steps of the other kind have their share first
	Company              // sequences that decoded a moment ago are waited for
)

// Why returns why the last Next took nothing of a kind.
func (s *Schedule[R]) Why(k Kind) Why { return s.why[k] }

// Waiting returns the requests of a kind that are ready, in order of arrival. They are the
// schedule's.
func (s *Schedule[R]) Waiting(k Kind) []R { return s.ready[k] }

// may reports whether a step of a kind may be formed now, and notes why not.
func (s *Schedule[R]) may(k Kind) bool {
	if len(s.ready[k]) == 0 {
		return false
	}
	switch p := &s.pace; {
	case len(p.steps) > s.cfg.Steps || p.count(k) >= s.most(k):
		s.why[k] = Room
	case k == Decode:
		s.why[k] = s.decodeWaits()
	case !p.preempts && p.decoding(): // it could not begin
		s.why[k] = OtherKind
	}
	return s.why[k] == Nothing
}

// most returns how many steps of a kind there may be at once. Unless it is better otherwise,
// sequences that decode travel together: whoever comes while a decode step is under way goes with
// the next one.
func (s *Schedule[R]) most(k Kind) int {
	if k == Decode && !s.splits() {
		return 1
	}
	return s.cfg.Steps
}

// decodeWaits returns why no decode step should be formed. If one should, nobody is waited for,
// since rows that travel together read their experts once, and prompts have had their turn. After
// each decode step at least a layer of a prompt that waits is due.
func (s *Schedule[R]) decodeWaits() Why {
	p := &s.pace
	if p.preempts {
		if why := s.notDue(); why != Nothing {
			return why
		}
	}
	if until := s.company(); until > 0 {
		s.waits.begin(until, false)
		return Company
	}
	s.waits.on = false
	if p.preempts {
		return Nothing
	}
	u := p.unbegun()
	switch {
	case u == nil && (len(s.ready[Prompt]) == 0 || p.count(Prompt) == s.cfg.Steps): // no prompt waits
		return Nothing
	case p.given == 0:
		return OtherKind
	case u == nil || p.decoding() || !p.turn(u, 1, s.decodeRows()):
		return Nothing
	}
	return OtherKind
}
