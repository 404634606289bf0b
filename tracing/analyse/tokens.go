package analyse

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Token is an answered request and where its time went. Decoding asks for a token at a time, so
// each is a request; the first token of a text comes with its prompt.
type Token struct {
	Token   int    `json:"token"` // from 1, in order of the answers
	Request uint64 `json:"request"`
	Seq     uint64 `json:"sequence"`
	Pos     int32  `json:"position"`
	Rows    int32  `json:"rows"`
	Steps   int    `json:"steps"`
	Outcome string `json:"outcome"`
	// FromNS is when the wall time begins: with the answer to the token before in its sequence, if
	// this is the next one, and otherwise with the request.
	FromNS int64   `json:"from_ns"`
	WallNS int64   `json:"wall_ns"`
	Causes []Share `json:"causes"` // the largest first; their sum is WallNS
	Pieces []Piece `json:"-"`      // in order of time, without a gap
}

// Share is how much of a time belongs to a cause.
type Share struct {
	Cause Cause   `json:"cause"`
	NS    int64   `json:"ns"`
	Share float64 `json:"share"`
	// Parts says more about a cause, the largest first: which stage, whose work.
	Parts []Part `json:"parts,omitempty"`
	// Advice says which settings change it.
	Advice string `json:"advice,omitempty"`
}

// Part is how much of a cause has what Piece.Where says.
type Part struct {
	Where string `json:"where"`
	NS    int64  `json:"ns"`
}

var outcomes = [...]string{record.Answered: "answered", record.Cancelled: "cancelled", record.Refused: "refused", record.Failed: "failed"}

func sequenceName(seq uint64) string { return fmt.Sprintf("sequence %d", seq) }

// tokens returns where the time of each request went.
func (x *index) tokens() []Token {
	return x.tokensOf(func(*record.Request) bool { return true })
}

// tokensOf returns where the time of the wanted requests went.
func (x *index) tokensOf(wanted func(*record.Request) bool) []Token {
	type end struct {
		ns  int64
		pos int32
	}
	last := make(map[uint64]end) // of a sequence: when its last answer was out, and where it ended
	all := make([]Token, 0, len(x.requests))
	for i := range x.requests {
		r := &x.requests[i]
		from := r.ArrivedNS
		if l, ok := last[r.Seq]; ok && r.Rows == 1 && l.pos == r.Pos && l.ns <= from {
			from = l.ns
		}
		last[r.Seq] = end{r.EndedNS, r.Pos + r.Rows}
		if !wanted(r) {
			continue
		}
		t := Token{
			Token: i + 1, Request: r.Request, Seq: r.Seq, Pos: r.Pos, Rows: r.Rows, Steps: len(x.stepsOf[r.Request]),
			Outcome: outcomes[min(int(r.Outcome), len(outcomes)-1)], FromNS: from, WallNS: max(0, r.EndedNS-from), Pieces: x.path(r, from),
		}
		t.Causes = shares(t.Pieces)
		all = append(all, t)
	}
	return all
}

// tokenOf returns the token of a number.
func tokenOf(all []Token, token int) (*Token, error) {
	if len(all) == 0 {
		return nil, errors.New("there is no answered request in these records")
	}
	if token < 1 || token > len(all) {
		return nil, fmt.Errorf("there is no token %d: the records have tokens 1 to %d", token, len(all))
	}
	return &all[token-1], nil
}

// chosen returns the token of a number, or, if that is 0, the slowest one that was decoded, or the
// slowest of all.
func chosen(all []Token, token int) (*Token, error) {
	if token != 0 || len(all) == 0 {
		return tokenOf(all, token)
	}
	best := &all[0]
	for i := range all {
		k := &all[i]
		if one, was := k.Rows == 1, best.Rows == 1; one && !was || one == was && k.WallNS > best.WallNS {
			best = k
		}
	}
	return best, nil
}

// path divides the time of a request into pieces, in order.
func (x *index) path(r *record.Request, from int64) []Piece {
	w := &walk{x: x, seq: r.Seq, floor: from, cur: r.EndedNS}
	steps := x.stepsOf[r.Request]
	for k, s := range slices.Backward(steps) {
		before := from
		if k > 0 {
			before = max(from, min(steps[k-1].endedNS, s.BeganNS))
		}
		w.floor = before
		w.follow(s)
		w.floor = before
		w.early(r, before)
	}
	w.floor = from
	w.step = &step{}
	w.early(r, from)
	return w.settled()
}

// early divides the time in which a request was in no step.
func (w *walk) early(r *record.Request, from int64) {
	if w.cur <= from {
		return
	}
	claims := []claim{{span: span{from, r.ArrivedNS}, cause: Caller}}
	waits := w.x.earlyWaits(0, from, w.cur)
	if r.Request != 0 {
		waits = append(waits, w.x.earlyWaits(r.Request, from, w.cur)...)
	}
	slices.SortStableFunc(waits, func(a, b record.Wait) int { return cmp.Compare(a.EndedNS, b.EndedNS) })
	for i := range waits {
		c := w.x.plain(&waits[i])
		c.span = span{waits[i].BeganNS, waits[i].EndedNS}
		claims = append(claims, c)
	}
	for i := range w.step.waits {
		c := w.x.plain(&w.step.waits[i])
		c.span = span{w.step.waits[i].BeganNS, w.step.waits[i].EndedNS}
		claims = append(claims, c)
	}
	claims = append(claims, w.line(from)...)
	if asked := w.x.askedAt(r); asked != nil {
		claims = append(claims, claim{span: span{r.ArrivedNS, asked.BeganNS}, cause: Mailbox})
	}
	w.put(from, claims, claim{cause: Unexplained}, -1)
}

// earlyWaits returns the waits of a request that was in no step, or of all (0), that may have time
// in common with [from, to).
func (x *index) earlyWaits(request uint64, from, to int64) (waits []record.Wait) {
	all := x.early[request]
	i, _ := slices.BinarySearchFunc(all, from, func(a record.Wait, t int64) int {
		return cmp.Compare(a.EndedNS, t)
	})
	for ; i < len(all) && all[i].EndedNS-x.longestWait < to; i++ {
		if all[i].BeganNS < to {
			waits = append(waits, all[i])
		}
	}
	return waits
}

// askedAt returns the message with which a request came; nil if it is not there.
func (x *index) askedAt(r *record.Request) *record.Handled {
	i, _ := slices.BinarySearchFunc(x.handled, r.ArrivedNS, func(h record.Handled, t int64) int { return cmp.Compare(h.BeganNS, t) })
	for ; i < len(x.handled); i++ {
		if h := &x.handled[i]; x.message[h.Message] == evalChunk && h.SentNS <= r.ArrivedNS {
			return h
		} else if h.SentNS > r.ArrivedNS+int64(1e9) {
			break
		}
	}
	return nil
}

// shares adds pieces up by cause, the largest first.
func shares(pieces []Piece) []Share {
	total := int64(0)
	by := make(map[Cause]*Share)
	for _, p := range pieces {
		s := by[p.Cause]
		if s == nil {
			s = &Share{Cause: p.Cause, Advice: p.Cause.Advice()}
			by[p.Cause] = s
		}
		s.NS += p.NS()
		total += p.NS()
		if p.Where != "" {
			s.add(p.Where, p.NS())
		}
	}
	all := make([]Share, 0, len(by))
	for _, s := range by {
		s.Share = float64(s.NS) / float64(max(total, 1))
		slices.SortFunc(s.Parts, func(a, b Part) int { return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Where, b.Where)) })
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Share) int { return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Cause, b.Cause)) })
	return all
}

func (s *Share) add(where string, ns int64) {
	for i := range s.Parts {
		if s.Parts[i].Where == where {
			s.Parts[i].NS += ns
			return
		}
	}
	s.Parts = append(s.Parts, Part{where, ns})
}
