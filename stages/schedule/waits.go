package schedule

import "slices"

// waits is the sequences that have got a token and will likely ask for the next one at once, and
// the wait for them, or for the time at which a decode step is due.
type waits struct {
	seqs  []expected
	on    bool   // a wait is under way
	until int64  // its end
	held  bool   // it is for the time at which a decode step is due
	over  bool   // the wait for the time at which a decode step is due is over
	round uint64 // of it, or of the last one
	timed uint64 // the last round that a timer was asked for
	// when the sequences got a token that have not been back since, nor gone
	away map[uint64]int64
	// what sequences that decode took lately from a token to asking for the next, at most
	takes map[uint64]int64
}

// expected is a sequence that is likely to be back by some time, and waited for until another one
// if that pays.
type expected struct {
	seq        uint64
	likely, by int64
}

const (
	// linger is how long a sequence is expected at least; so is a part of a step, see patience.
	// Choosing a token takes a caller some 10 to 100 µs; a token itself takes milliseconds.
	linger = 200_000
	// takesFades is the part by which the longest time that a sequence took counts less with each
	// token.
	takesFades = 8
)

// begin begins a wait, unless it is under way.
func (w *waits) begin(until int64, held bool) {
	if !w.on || w.until != until || w.held != held {
		w.on, w.until, w.held = true, until, held
		w.round++
	}
}

// Expect notes that a sequence has got a token and will likely ask for the next one at once.
func (s *Schedule[R]) Expect(seq uint64) {
	w := &s.waits
	w.away[seq] = s.pace.now
	if !s.Expects(seq) {
		takes := w.takes[seq]
		likely := max(linger, takes+takes/4)
		by := max(likely, s.patience())
		if s.places() {
			likely = by
		}
		w.seqs = append(w.seqs, expected{seq, s.pace.now + likely, s.pace.now + by})
	}
}

// Back notes that a sequence asks for its next token.
func (s *Schedule[R]) Back(seq uint64) {
	w := &s.waits
	if since, ok := w.away[seq]; ok {
		before := w.takes[seq]
		w.takes[seq] = max(s.pace.now-since, before-before/takesFades)
	}
	w.back(seq)
}

// Unexpect notes that a sequence does something else, or is gone.
func (s *Schedule[R]) Unexpect(seq uint64) {
	s.waits.back(seq)
	delete(s.waits.takes, seq)
}

func (w *waits) back(seq uint64) {
	delete(w.away, seq)
	if i := w.index(seq); i >= 0 {
		w.seqs = slices.Delete(w.seqs, i, i+1)
	}
}

func (w *waits) index(seq uint64) int {
	return slices.IndexFunc(w.seqs, func(e expected) bool { return e.seq == seq })
}

// Expects reports whether a sequence is expected.
func (s *Schedule[R]) Expects(seq uint64) bool { return s.waits.index(seq) >= 0 }

// Expected returns how many sequences are expected.
func (s *Schedule[R]) Expected() int { return len(s.waits.seqs) }

// Timer returns the round of a wait that has begun, 0 if there is none. The caller is to limit it
// by calling WaitOver with it at a time on the clock of Now.
func (s *Schedule[R]) Timer() (round uint64, at int64) {
	w := &s.waits
	if !w.on || w.timed == w.round {
		return 0, 0
	}
	w.timed = w.round
	return w.round, w.until
}

// WaitOver ends a wait by time: who should be back by now is not expected any more. The end of an
// earlier wait says nothing.
func (s *Schedule[R]) WaitOver(round uint64) {
	if w := &s.waits; w.on && round == w.round {
		w.on, w.over = false, w.held
		w.seqs = slices.DeleteFunc(w.seqs, func(e expected) bool { return e.likely <= w.until })
	}
}
