package analyse

import (
	"cmp"
	"slices"
)

// Piece is a stretch of time with one cause.
type Piece struct {
	FromNS, ToNS int64
	Cause        Cause
	// Where says more: a stage, a kind of read, the sequence that went first. It may be empty.
	Where string
	Layer int32 // -1: none
}

// NS returns how long the piece is.
func (p *Piece) NS() int64 { return p.ToNS - p.FromNS }

// span is a half-open interval of time.
type span struct{ from, to int64 }

// claim is a span with what it is claimed for.
type claim struct {
	span
	cause Cause
	where string
}

// divide cuts [from, to) into pieces: each instant goes to the first claim that covers it, and to
// rest where none does. Claims may overlap and lie anywhere. Neighbouring pieces differ.
func divide(from, to int64, claims []claim, rest claim, layer int32) []Piece {
	if from >= to {
		return nil
	}
	cuts := []int64{from, to}
	for _, c := range claims {
		for _, t := range [2]int64{c.from, c.to} {
			if t > from && t < to {
				cuts = append(cuts, t)
			}
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	whose := owners(cuts, claims)
	var pieces []Piece
	for i, at := range cuts[:len(cuts)-1] {
		got := rest
		if n := whose[i]; n >= 0 {
			got = claims[n]
		}
		pieces = appendPiece(pieces, Piece{at, cuts[i+1], got.cause, got.where, layer})
	}
	return pieces
}

// owners returns for each stretch between two cuts the first claim that covers it, or -1. A claim
// steps over what earlier ones have: there may be a hundred thousand of them.
func owners(cuts []int64, claims []claim) (whose []int) {
	n := len(cuts) - 1
	// next is, for each stretch, one that may be free and is not before it.
	whose, next := make([]int, n), make([]int, n+1)
	for i := range whose {
		whose[i], next[i] = -1, i
	}
	next[n] = n
	free := func(i int) int {
		for next[i] != i {
			next[i] = next[next[i]]
			i = next[i]
		}
		return i
	}
	for c := range claims {
		i, _ := slices.BinarySearch(cuts, claims[c].from)
		for i = free(min(i, n)); i < n && cuts[i] < claims[c].to; i = free(i) {
			whose[i], next[i] = c, i+1
		}
	}
	return whose
}

// appendPiece appends p, or makes the last piece longer if it is of the same kind.
func appendPiece(pieces []Piece, p Piece) []Piece {
	if p.FromNS >= p.ToNS {
		return pieces
	}
	if n := len(pieces) - 1; n >= 0 {
		if l := &pieces[n]; l.ToNS == p.FromNS && l.Cause == p.Cause && l.Where == p.Where && l.Layer == p.Layer {
			l.ToNS = p.ToNS
			return pieces
		}
	}
	return append(pieces, p)
}

// union sorts spans and joins those that touch.
func union(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	all := spans[:0]
	for _, s := range spans {
		switch n := len(all) - 1; {
		case s.from >= s.to:
		case n >= 0 && s.from <= all[n].to:
			all[n].to = max(all[n].to, s.to)
		default:
			all = append(all, s)
		}
	}
	return all
}

// within cuts disjoint spans in order to those inside [from, to).
func within(spans []span, from, to int64) (in []span) {
	i, _ := slices.BinarySearchFunc(spans, from, func(s span, t int64) int { return cmp.Compare(s.to, t+1) })
	for ; i < len(spans) && spans[i].from < to; i++ {
		if s := (span{max(spans[i].from, from), min(spans[i].to, to)}); s.from < s.to {
			in = append(in, s)
		}
	}
	return in
}

// gaps returns what disjoint spans in order leave of [from, to).
func gaps(spans []span, from, to int64) (free []span) {
	for _, s := range within(spans, from, to) {
		if s.from > from {
			free = append(free, span{from, s.from})
		}
		from = s.to
	}
	if from < to {
		free = append(free, span{from, to})
	}
	return free
}

// length adds spans up.
func length(spans []span) (ns int64) {
	for _, s := range spans {
		ns += s.to - s.from
	}
	return ns
}
