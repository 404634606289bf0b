package schedule

import "slices"

// Expect notes that a sequence has got a token and will likely ask for the next one at once.
func (s *Schedule[R]) Expect(seq uint64) {
	if !s.Expects(seq) {
		s.expected = append(s.expected, seq)
	}
}

// Unexpect notes that a sequence is back, or will not come.
func (s *Schedule[R]) Unexpect(seq uint64) {
	if i := slices.Index(s.expected, seq); i >= 0 {
		s.expected = slices.Delete(s.expected, i, i+1)
	}
}

// Expects reports whether a sequence is expected.
func (s *Schedule[R]) Expects(seq uint64) bool { return slices.Contains(s.expected, seq) }

// Expected returns how many sequences are expected.
func (s *Schedule[R]) Expected() int { return len(s.expected) }

// WaitOver ends a wait by time: nobody is expected any more. The end of an earlier wait says
// nothing.
func (s *Schedule[R]) WaitOver(round uint64) {
	if s.waiting && round == s.round {
		s.waiting = false
		s.expected = s.expected[:0]
	}
}
