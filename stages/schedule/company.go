package schedule

// company returns until when a decode step should wait for sequences that are expected, 0 for not
// at all. Whoever misses a step comes into one of its own and misses the next as well, so that two
// sequences would take turns for ever; rows that travel together read their experts and weights
// once. So the wait may last as long as what it saves, for as many as are back by then.
func (s *Schedule[R]) company() (until int64) {
	now, ready, most := s.pace.now, len(s.ready[Decode]), s.together()
	if ready >= most {
		return 0
	}
	for n := len(s.waits.seqs); n > 0; {
		latest, back := now+s.saves(ready, min(n, most-ready)), 0
		until = 0
		for _, e := range s.waits.seqs {
			if e.by > now && e.likely <= latest {
				back++
				until = max(until, min(e.by, latest))
			}
		}
		if back >= n {
			return until
		}
		n = back
	}
	return 0
}

// saves returns the time that a decode step of some rows saves by having more, which else would
// have a step of their own. Of steps that several devices compute one after the other, each has one
// of a few places: a small one leaves the devices idle for as long as it has its place. How much
// the others would take says nothing there, for of steps in line one ends soon after the other.
func (s *Schedule[R]) saves(rows, more int) int64 {
	one, _, _ := s.pace.decode(rows)
	if s.places() {
		return max(linger, int64(one), s.patience())
	}
	if one == 0 { // nothing is known yet: a moment costs little
		return linger
	}
	other, _, _ := s.pace.decode(more)
	both, _, _ := s.pace.decode(rows + more)
	share := float64(rows) / float64(rows+more)
	one, other = partOf(both, share, one), partOf(both, 1-share, other)
	return int64(one + other - both)
}

// partOf corrects the time measured for a part of a step's rows: it is at most that of the whole
// step and at least its share by rows. Each number of rows is measured only when it occurs, and the
// texts may have grown since. Comparing an old measurement with a new one could make separate steps
// look quicker for good, since separate steps never measure the shared one.
func partOf(whole, share, took float64) float64 { return min(max(took, whole*share), whole) }

// places reports whether sequences that decode are divided among as many steps as there are
// devices.
func (s *Schedule[R]) places() bool { return s.cfg.Parts > 1 && s.splits() }

// patience is how long a sequence is expected at least, if that pays: a part of what a step takes
// that has its share. The callers of a step's rows come back one after the other, one of them late
// now and then, and who misses the step has a small one. Where steps have places callers also wait
// for stages that are at work for another step, and so get more.
func (s *Schedule[R]) patience() int64 {
	whole, _, _ := s.pace.decode(min(s.together(), s.decoding()))
	if s.places() {
		return int64(whole) / placePatience
	}
	return int64(whole) / stepPatience
}

const (
	placePatience = 8
	stepPatience  = 16
)
