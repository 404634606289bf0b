package schedule

import "slices"

// Request is what the schedule must know of a chunk that is ready for a step.
type Request interface {
	comparable
	// Left returns how many rows are still to be computed, at least 1.
	Left() int
	// Alone reports whether the request must have a step to itself.
	Alone() bool
}

// Share is the next rows of a request that a step takes.
type Share[R Request] struct {
	Request R
	Rows    int
}

// Schedule is the requests that are in no step, and the sequences that are likely to bring one at
// once.
type Schedule[R Request] struct {
	rows  int // most of a step
	ready []R // in order of arrival

	expected []uint64 // sequences
	round    uint64   // of waiting for them
	waiting  bool

	shares []Share[R] // memory for the next answer of Next
}

// New returns an empty schedule for steps of at most rows rows.
func New[R Request](rows int) Schedule[R] { return Schedule[R]{rows: rows} }

// Add makes a request ready, as the last one.
func (s *Schedule[R]) Add(r R) { s.ready = append(s.ready, r) }

// AddAt makes a request ready in place i, or as the last one if there are fewer.
func (s *Schedule[R]) AddAt(i int, r R) { s.ready = slices.Insert(s.ready, min(i, len(s.ready)), r) }

// Remove takes back a request. It does nothing if the request is not ready.
func (s *Schedule[R]) Remove(r R) {
	if i := slices.Index(s.ready, r); i >= 0 {
		s.ready = slices.Delete(s.ready, i, i+1)
	}
}

// Ready returns how many requests are ready.
func (s *Schedule[R]) Ready() int { return len(s.ready) }

// Next returns the shares of the next step and takes their requests, which are ready again only by
// Add. It returns none if nothing is ready or a step should wait for sequences that are expected:
// rows that travel together read their experts once. A wait has a time limit, which the caller
// keeps: if round is not 0, a wait has begun, and the caller calls WaitOver with it when the limit
// is reached. The shares are the schedule's until the next call.
func (s *Schedule[R]) Next() (shares []Share[R], round uint64) {
	switch {
	case len(s.ready) == 0:
		return nil, 0
	case len(s.expected) == 0:
		s.waiting = false
	case s.full():
	case s.waiting:
		return nil, 0
	default:
		s.waiting = true
		s.round++
		return nil, s.round
	}
	return s.take(), 0
}

// full reports whether what is ready fills a step by itself.
func (s *Schedule[R]) full() bool {
	rows := 0
	for _, r := range s.ready {
		rows += r.Left()
	}
	return rows >= s.rows
}

// take takes rows in order of arrival. A prompt leaves one row to each decoding sequence after it.
func (s *Schedule[R]) take() []Share[R] {
	s.shares = s.shares[:0]
	decoding := 0
	for _, r := range s.ready {
		if r.Left() == 1 {
			decoding++
		}
	}
	room := s.rows
	rest := s.ready[:0]
	for _, r := range s.ready {
		n := 1
		if r.Left() == 1 {
			decoding--
		} else {
			n = min(r.Left(), max(room-decoding, 1))
		}
		if room < 1 || len(s.shares) > 0 && (r.Alone() || s.shares[0].Request.Alone()) {
			rest = append(rest, r)
			continue
		}
		room -= n
		s.shares = append(s.shares, Share[R]{r, n})
	}
	clear(s.ready[len(rest):])
	s.ready = rest
	return s.shares
}
