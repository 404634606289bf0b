package schedule

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages/fair"
)

// lines are the keys that have prompts: whose the next rows are, and what each had.
type lines struct {
	clock   fair.Clock // of rows of prompts; a key with prompts that are ready or in a step is active
	of      map[string]*line
	reading []reading
	next    []*line // memory of divide
}

// line is the prompts of one key.
type line struct {
	key   string
	rows  fair.Account
	ready []int // places among all prompts that are ready, in order of arrival; memory of divide
	at    int   // how many of them have had their turn
}

// reading is a prompt of a line that is in a step.
type reading struct {
	step  uint64
	line  *line
	ended bool // the step is over; the prompt may have come back since
}

// join notes that a prompt of a key is ready.
func (x *lines) join(key string, weight int) {
	l := x.of[key]
	if l == nil {
		l = &line{key: key}
		x.of[key] = l
	}
	x.clock.Weigh(&l.rows, weight)
	x.clock.Open(&l.rows)
}

// leave ends what join began. Keys that would begin anew anyway are forgotten.
func (x *lines) leave(l *line) {
	x.clock.Close(&l.rows)
	if l.rows.Active() {
		return
	}
	for key, l := range x.of {
		if !l.rows.Active() && !x.clock.Ahead(&l.rows) {
			delete(x.of, key)
		}
	}
}

// ended notes that a step is over.
func (x *lines) ended(step uint64) {
	for i := range x.reading {
		if x.reading[i].step == step {
			x.reading[i].ended = true
		}
	}
}

// settle lets go of prompts whose step is over. By now those that go on have joined again, so that
// their keys were not idle in between.
func (x *lines) settle() {
	x.reading = slices.DeleteFunc(x.reading, func(r reading) bool {
		if r.ended {
			x.leave(r.line)
		}
		return r.ended
	})
}

// divide gives the rows of a prompt step to prompts that are ready, and takes these. The key goes
// first that would have got its first prompt's next rows first if all keys were served at once, row
// by row, each by its weight: so each key gets what it is due, and one that wants little need not
// wait until others have had much. Within a key prompts take turns, in order of arrival. Few
// prompts share a step, since pieces of many are slower to compute than a large piece of one.
func (s *Schedule[R]) divide(step uint64, room int) []Share[R] {
	ready, x := s.ready[Prompt], &s.lines
	shares, whole := s.shares[:0], room
	x.next = x.next[:0]
	for i, r := range ready {
		l := x.of[r.Key()]
		if len(l.ready) == 0 {
			x.next = append(x.next, l)
		}
		l.ready = append(l.ready, i)
	}
	var taken R
	for room > 0 && (len(shares) == 0 || !shares[0].Request.Alone()) {
		l := s.first(whole, len(shares) > 0)
		if l == nil {
			break
		}
		i := l.ready[l.at]
		r := ready[i]
		l.at++
		n := min(r.Left(), room)
		room -= n
		shares, ready[i] = append(shares, Share[R]{r, n}), taken
		x.clock.Serve(&l.rows, int64(n))
		x.reading = append(x.reading, reading{step: step, line: l})
	}
	for _, l := range x.next {
		l.ready, l.at = l.ready[:0], 0
	}
	s.ready[Prompt] = slices.DeleteFunc(ready, func(r R) bool { return r == taken })
	return shares
}

// first returns the line whose first prompt goes next, of pieces of at most some rows; nil if none
// is left. Of several it is the one whose prompt was ready first. In company those that must have a
// step to themselves are passed over.
func (s *Schedule[R]) first(rows int, company bool) (first *line) {
	var least int64
	for _, l := range s.lines.next {
		for company && l.at < len(l.ready) && s.ready[Prompt][l.ready[l.at]].Alone() {
			l.at++
		}
		if l.at == len(l.ready) {
			continue
		}
		ends := l.rows.With(int64(min(s.ready[Prompt][l.ready[l.at]].Left(), rows)))
		if first == nil || ends < least || ends == least && l.ready[l.at] < first.ready[first.at] {
			first, least = l, ends
		}
	}
	return first
}
