package recorder

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// kind is what is compared with its like.
type kind int

// The kinds.
const (
	token      kind = iota // a request of one row
	decodeStep             // its step
	promptStep             // several kinds: those of 1, of 2 to 3, of 4 to 7 rows, and so on
	kinds      = promptStep + 32
)

// Of a kind, the last durations make the usual one, as soon as there are enough.
const (
	lastOnes = 101
	enough   = 20
	// leastExcess is what something must take beyond the usual to be slow: less is the system's
	// noise, which of tiny models is many times a token.
	leastExcess = 10 * time.Millisecond
)

// slow finds what is slow among new records.
type slow struct {
	cfg    Flight
	steps  map[uint64]record.Step // that have not ended
	ends   []record.StepEnded     // of one look
	usual  [kinds]usual
	seen   struct{ requests, steps, ended record.Cursor }
	reason string // of the worst among the new ones
	worst  int64
	found  int
}

// usual is the last durations of a kind, in nanoseconds.
type usual struct {
	last   []int64 // a ring
	next   int
	median int64 // 0: not known; when the last look began, or when there were enough
}

func newSlow(f Flight) slow { return slow{cfg: f, steps: make(map[uint64]record.Step)} }

// look returns how many slow things are among the new records, and of the slowest what it is.
func (s *slow) look(l *record.Log) (reason string, n int) {
	s.reason, s.worst, s.found = "", 0, 0
	for k := range s.usual {
		s.usual[k].settle()
	}
	l.Requests.Read(&s.seen.requests, func(all []record.Request) {
		for i := range all {
			s.request(&all[i])
		}
	})
	// A step is written before its end: read in the other order, no end is without its step.
	s.ends = s.ends[:0]
	l.StepsEnded.Read(&s.seen.ended, func(all []record.StepEnded) { s.ends = append(s.ends, all...) })
	l.Steps.Read(&s.seen.steps, func(all []record.Step) {
		for _, st := range all {
			s.steps[st.Step] = st
		}
	})
	for _, e := range s.ends {
		s.ended(e)
	}
	if len(s.steps) > 1024 { // the ends of some were forgotten
		clear(s.steps)
	}
	return s.reason, s.found
}

func (s *slow) request(r *record.Request) {
	if r.Outcome != record.Answered {
		return
	}
	if waited := r.BeganNS - r.ArrivedNS; s.cfg.After > 0 && waited > int64(s.cfg.After) {
		s.note(waited, fmt.Sprintf("request %d of sequence %d waited %s for its first step", r.Request, r.Seq, short(waited)))
	}
	if r.Rows == 1 {
		s.judge(token, r.EndedNS-r.ArrivedNS, func() string {
			return fmt.Sprintf("the token at position %d of sequence %d (request %d)", r.Pos, r.Seq, r.Request)
		})
	}
}

func (s *slow) ended(e record.StepEnded) {
	st, ok := s.steps[e.Step]
	delete(s.steps, e.Step)
	if !ok || e.Failed == 1 || st.Rows == 0 {
		return
	}
	k := promptStep + kind(bits.Len32(uint32(st.Rows)))
	if st.Urgent == 1 {
		k = decodeStep
	}
	s.judge(k, e.EndedNS-st.BeganNS, func() string {
		return fmt.Sprintf("step %d of %d rows", st.Step, st.Rows)
	})
}

// judge compares what took ns with the bounds, and adds it to its kind.
func (s *slow) judge(k kind, ns int64, what func() string) {
	u := &s.usual[k]
	if u.median == 0 {
		u.settle()
	}
	usually := u.median
	switch {
	case s.cfg.After > 0 && ns > int64(s.cfg.After):
		s.note(ns, fmt.Sprintf("%s took %s, more than %v", what(), short(ns), s.cfg.After))
	case s.cfg.Times > 0 && usually > 0 && float64(ns) > s.cfg.Times*float64(usually) && ns-usually > int64(leastExcess):
		s.note(ns, fmt.Sprintf("%s took %s, %.1f times the usual %s", what(), short(ns), float64(ns)/float64(usually), short(usually)))
	}
	u.add(ns)
}

// note counts something slow and remembers the slowest.
func (s *slow) note(ns int64, reason string) {
	s.found++
	if ns > s.worst {
		s.worst, s.reason = ns, reason
	}
}

func (u *usual) add(ns int64) {
	if len(u.last) < lastOnes {
		u.last = append(u.last, ns)
		return
	}
	u.last[u.next] = ns
	u.next = (u.next + 1) % lastOnes
}

// settle computes the median of the last durations.
func (u *usual) settle() {
	if len(u.last) >= enough {
		sorted := slices.Clone(u.last)
		slices.Sort(sorted)
		u.median = sorted[len(sorted)/2]
	}
}

// short writes a duration with three digits or so.
func short(ns int64) string {
	d := time.Duration(ns)
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= 10*unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}
