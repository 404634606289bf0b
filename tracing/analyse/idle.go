package analyse

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// deviceBusy says when the device worked within [from, to), or one of several, and why it did not.
func (x *index) deviceBusy(tokens []Token, from, to int64) Busy {
	return busy(x.work(func(*record.Submission) bool { return true }), tokens, from, to, Device)
}

// devicesBusy says it of each of several devices. While one of them is idle tokens may have
// another one compute.
func (x *index) devicesBusy(tokens []Token, from, to int64) (all []Busy) {
	if len(x.rec.Meta.Engine.Borders) == 0 {
		return nil
	}
	for n := range len(x.rec.Meta.Engine.Borders) + 1 {
		work := x.work(func(s *record.Submission) bool { return int(s.Device) == n })
		all = append(all, busy(work, tokens, from, to))
	}
	return all
}

// work returns when what is wanted was computed.
func (x *index) work(wanted func(*record.Submission) bool) (work []span) {
	for i := range x.device {
		if s := &x.device[i]; wanted(s) {
			work = append(work, span{s.BeganNS, s.EndedNS})
		}
	}
	return work
}

// diskBusy says when experts were being read within [from, to), and why they were not.
func (x *index) diskBusy(tokens []Token, from, to int64) Busy {
	var work []span
	for _, i := range x.taken {
		work = append(work, span{x.reads[i].BeganNS, x.reads[i].EndedNS})
	}
	return busy(work, tokens, from, to, Disk)
}

// busy divides the time in which nothing was at work by what the tokens under way spent it on: the
// one that is answered first, of those that somebody has asked for. never are causes that cannot
// be.
func busy(work []span, tokens []Token, from, to int64, never ...Cause) Busy {
	work = union(work)
	b := Busy{FromNS: from, ToNS: to, BusyNS: length(within(work, from, to))}
	b.IdleNS = to - from - b.BusyNS
	var idle []Piece
	way := underWay{tokens: tokens}
	for _, free := range gaps(work, from, to) {
		var asked, unasked []claim
		for _, i := range way.during(free) {
			for _, p := range tokens[i].overlapping(free) {
				c := claim{span{p.FromNS, p.ToNS}, p.Cause, p.Where}
				switch {
				case slices.Contains(never, p.Cause):
				case p.Cause == Caller:
					unasked = append(unasked, c)
				default:
					asked = append(asked, c)
				}
			}
		}
		idle = append(idle, divide(free.from, free.to, append(asked, unasked...), claim{cause: Caller}, -1)...)
	}
	b.Idle = shares(idle)
	return b
}

// underWay tells which tokens were under way, of spans that follow one another.
type underWay struct {
	tokens []Token
	begun  []int // by when they began; nil: not sorted yet
	next   int   // of begun
	now    []int // those that were not over when the last span began
}

// during returns the tokens that were under way during s, in their order. It is good until the next
// call.
func (u *underWay) during(s span) []int {
	if u.begun == nil {
		u.begun = make([]int, len(u.tokens))
		for i := range u.begun {
			u.begun[i] = i
		}
		slices.SortStableFunc(u.begun, func(a, b int) int {
			return cmp.Compare(u.tokens[a].FromNS, u.tokens[b].FromNS)
		})
	}
	for ; u.next < len(u.begun) && u.tokens[u.begun[u.next]].FromNS < s.to; u.next++ {
		u.now = append(u.now, u.begun[u.next])
	}
	u.now = slices.DeleteFunc(u.now, func(i int) bool { return u.tokens[i].FromNS+u.tokens[i].WallNS < s.from })
	slices.Sort(u.now)
	return u.now
}

// overlapping returns the pieces of a token that have time in common with s.
func (t *Token) overlapping(s span) []Piece {
	from, _ := slices.BinarySearchFunc(t.Pieces, s.from, func(p Piece, ns int64) int { return cmp.Compare(p.ToNS, ns+1) })
	to := from
	for to < len(t.Pieces) && t.Pieces[to].FromNS < s.to {
		to++
	}
	return t.Pieces[from:to]
}
