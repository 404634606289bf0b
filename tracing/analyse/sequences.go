package analyse

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// sequences says what each sequence took, the one with the longest wall time first.
func (x *index) sequences(tokens []Token) []Sequence {
	by := make(map[uint64]*Sequence)
	pieces := make(map[uint64][]Piece)
	of := func(seq uint64) *Sequence {
		s := by[seq]
		if s == nil {
			s = &Sequence{Seq: seq}
			by[seq] = s
		}
		return s
	}
	for i := range tokens {
		t := &tokens[i]
		s := of(t.Seq)
		s.Tokens, s.Rows, s.WallNS = s.Tokens+1, s.Rows+int(t.Rows), s.WallNS+t.WallNS
		pieces[t.Seq] = append(pieces[t.Seq], t.Pieces...)
	}
	for i := range x.device {
		d := &x.device[i]
		x.divideByRows(d.Step, d.EndedNS-d.BeganNS-d.PausedNS, func(seq uint64, ns int64) { of(seq).DeviceNS += ns })
	}
	for i := range x.reads {
		r := &x.reads[i]
		if step := x.payer(r); step != 0 {
			x.divideByRows(step, r.Bytes, func(seq uint64, bytes int64) { of(seq).ReadBytes += bytes })
		}
	}
	named := make(map[string]*Sequence)
	for seq, s := range by {
		named[sequenceName(seq)] = s
	}
	for i := range tokens {
		for _, p := range tokens[i].Pieces {
			if s := named[p.Where]; s != nil && p.Cause == OtherRequest {
				s.ForNS += p.NS()
			}
		}
	}
	all := make([]Sequence, 0, len(by))
	for seq, s := range by {
		s.Causes = shares(pieces[seq])
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Sequence) int { return cmp.Or(cmp.Compare(b.WallNS, a.WallNS), cmp.Compare(a.Seq, b.Seq)) })
	return all
}

// payer returns the step that a read is counted for: the one that asked for it on demand, or that
// used the expert of a guess first; 0 if nobody did.
func (x *index) payer(r *record.Read) uint64 {
	if r.Hint == 0 {
		return r.Step
	}
	for _, u := range x.lastUse[place{r.Layer, r.Expert}] {
		if u.Hint == r.Hint {
			return u.Step
		}
	}
	return 0
}

// divideByRows shares a number among the sequences of a step by their rows. No remainder is lost.
func (x *index) divideByRows(step uint64, n int64, f func(seq uint64, share int64)) {
	s := x.steps[step]
	if s == nil || s.Rows <= 0 {
		return
	}
	rows, given := int64(0), int64(0)
	for _, g := range s.segments {
		rows += int64(g.Rows)
		share := n*rows/int64(s.Rows) - given
		given += share
		f(g.Seq, share)
	}
}
