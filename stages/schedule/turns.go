package schedule

// Now tells the time in nanoseconds, on any clock. It does not go back.
func (s *Schedule[R]) Now(ns int64) { s.pace.now = max(s.pace.now, ns) }

// Layers returns how many layers of a step may begin now, at most n. Decode steps begin whenever
// they can. A prompt step begins when no decode step has anything left to begin, and as far as the
// next one will be in time all the same.
func (s *Schedule[R]) Layers(id uint64, n int) int {
	st := s.pace.find(id)
	if st == nil || st.kind == Decode || s.pace.preempts {
		return n
	}
	if s.pace.decoding() {
		return 0
	}
	for n > 0 && !s.pace.turn(st, n, s.decodeRows()) {
		n--
	}
	switch {
	case n > 0:
	case len(s.waits.seqs) > 0 && s.pace.now < s.pace.ended+linger:
		if !s.waits.on {
			s.waits.begin(s.pace.ended+linger, false)
		}
	case len(s.ready[Decode]) == 0 && s.pace.count(Decode) == 0: // nobody is kept waiting
		n = 1
	}
	return n
}

// Begun notes that n layers of a step have begun.
func (s *Schedule[R]) Begun(id uint64, n int) {
	if st := s.pace.find(id); st != nil {
		s.pace.begin(st, n)
	}
}

// Retired notes that n layers of a step are done.
func (s *Schedule[R]) Retired(id uint64, n int) {
	if st := s.pace.find(id); st != nil {
		s.pace.retire(st, n)
	}
}

// Asked notes that nothing of a step is left to begin.
func (s *Schedule[R]) Asked(id uint64) {
	if st := s.pace.find(id); st != nil && !st.asked {
		st.asked = true
		if st.kind == Decode {
			s.pace.given = 0
		}
	}
}

// Failed notes that nothing of a step will begin any more. What it takes is not counted.
func (s *Schedule[R]) Failed(id uint64) {
	s.Asked(id)
	if st := s.pace.find(id); st != nil {
		st.measured = false
	}
}

// Ended notes that a step is over.
func (s *Schedule[R]) Ended(id uint64) {
	s.lines.ended(id)
	if st := s.pace.find(id); st != nil {
		if st.kind == Decode {
			s.apart.step(s.pace.now, st.rows, s.decoding(), st.measured && !s.prompts() && s.pace.recent())
		}
		s.pace.end(st)
	}
}
