package schedule

import "slices"

// waits is the sequences that have got a token and will likely ask for the next one at once, and
// the wait for them, or for the time at which a decode step is due.
type waits struct {
	seqs  []uint64
	on    bool   // a wait is under way
	until int64  // its end, in nanoseconds; 0: a moment for sequences that are expected
	over  bool   // the wait for the time at which a decode step is due is over
	round uint64 // of it, or of the last one
	timed uint64 // the last round that a timer was asked for
	// the sequences that have decoded and have not been back since, nor gone
	away map[uint64]struct{}
}

// begin begins a wait, unless it is under way.
func (w *waits) begin(until int64) {
	if !w.on || w.until != until {
		w.on, w.until = true, until
		w.round++
	}
}

// Expect notes that a sequence has got a token and will likely ask for the next one at once.
func (s *Schedule[R]) Expect(seq uint64) {
	s.waits.away[seq] = struct{}{}
	if !s.Expects(seq) {
		s.waits.seqs = append(s.waits.seqs, seq)
	}
}

// Unexpect notes that a sequence is back, or will not come.
func (s *Schedule[R]) Unexpect(seq uint64) {
	delete(s.waits.away, seq)
	if i := slices.Index(s.waits.seqs, seq); i >= 0 {
		s.waits.seqs = slices.Delete(s.waits.seqs, i, i+1)
	}
}

// Expects reports whether a sequence is expected.
func (s *Schedule[R]) Expects(seq uint64) bool { return slices.Contains(s.waits.seqs, seq) }

// Expected returns how many sequences are expected.
func (s *Schedule[R]) Expected() int { return len(s.waits.seqs) }

// Timer returns the round of a wait that has begun, 0 if there is none. The caller is to limit it
// by calling WaitOver with it: at a time on the clock of Now, or, where that is 0, in a moment.
func (s *Schedule[R]) Timer() (round uint64, at int64) {
	w := &s.waits
	if !w.on || w.timed == w.round {
		return 0, 0
	}
	w.timed = w.round
	return w.round, w.until
}

// WaitOver ends a wait by time: nobody is expected any more. The end of an earlier wait says
// nothing.
func (s *Schedule[R]) WaitOver(round uint64) {
	if w := &s.waits; w.on && round == w.round {
		w.on, w.over = false, w.until != 0
		w.seqs = w.seqs[:0]
	}
}
