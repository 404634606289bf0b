package analyse

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// walk follows the critical path of one token backwards, from its answer: each thing that happened
// is followed to the last of those that it had to wait for.
type walk struct {
	x      *index
	step   *step
	seq    uint64  // the token's
	floor  int64   // where the walk ends
	cur    int64   // everything from here on is in pieces
	pieces []Piece // the last one first
	blamed []claim // waits of the step for itself: what stood still in them is theirs
}

// node is where a walk stands: at a message, a submission, a read or an answer, by its
// index.
type node struct {
	sort nodeSort
	i    int
	via  via
}

type nodeSort uint8

const (
	lost nodeSort = iota
	atMessage
	atSubmission
	atRead
	atAnswer
)

// via is what a message was sent for: what the walk came from.
type via struct{ layer, wave int32 }

// put cuts the time from a moment to where the walk stands into pieces, and goes there.
func (w *walk) put(from int64, claims []claim, rest claim, layer int32) {
	from = max(from, w.floor)
	if from >= w.cur {
		return
	}
	cut := divide(from, w.cur, claims, rest, layer)
	slices.Reverse(cut)
	w.pieces = append(w.pieces, cut...)
	w.cur = from
}

// follow goes back through a step, until it was formed.
func (w *walk) follow(s *step) {
	w.step, w.floor = s, max(w.floor, s.BeganNS)
	n := w.x.lastMessage(s, w.cur)
	for stuck := 0; w.cur > w.floor; stuck++ {
		at := w.cur
		if stuck > mostStuck { // records that contradict each other must not hold it up
			n.sort, stuck = lost, 0
		}
		switch n.sort {
		case atMessage:
			n = w.message(n)
		case atSubmission:
			n = w.submission(n)
		case atRead:
			n = w.read(n)
		case atAnswer:
			n = w.answer(n)
		default:
			n = w.resume()
			if w.cur == at && n.sort == lost {
				w.put(w.floor, nil, claim{cause: Unexplained}, -1)
			}
		}
		if w.cur < at {
			stuck = 0
		}
	}
	w.put(w.floor, nil, claim{cause: Unexplained}, -1)
}

// mostStuck is how many things may happen at one moment, one because of the other.
const mostStuck = 64

// lastMessage returns the last message about a step that was sent before t to the sequencer.
func (x *index) lastMessage(s *step, t int64) node {
	for _, i := range slices.Backward(s.handled) {
		if h := &x.handled[i]; h.BeganNS <= t && x.stage(h.Stage) == "sequencer" {
			return node{atMessage, i, via{-1, -1}}
		}
	}
	return node{}
}

// message goes from the handling of a message to what made the message.
func (w *walk) message(n node) node {
	h := &w.x.handled[n.i]
	if h.EndedNS < w.cur {
		w.put(h.EndedNS, w.waits(h.EndedNS), claim{cause: Unexplained}, h.Layer)
	}
	if wt := w.step.waited(h, n.via); wt != nil {
		w.put(wt.EndedNS, nil, w.handling(h), h.Layer)
		if h.Step != w.step.Step.Step || wt.Reason == record.ReadCredit {
			return w.wait(wt, n.i)
		}
		w.blame(wt)
	}
	w.put(h.BeganNS, nil, w.handling(h), h.Layer)
	w.put(h.SentNS, w.line(h.SentNS), claim{cause: Mailbox}, h.Layer)
	switch w.x.message[h.Message] {
	case ticketDone:
		return w.x.submissionOf(h)
	case expertsRead:
		return w.x.readOf(h, w.step)
	case expertsAnswered:
		return w.x.answerOf(h)
	}
	return w.sent(h.SentNS, n.i, w.x.sender[h.Message], via{h.Layer, h.Wave})
}

// sent returns the message during whose handling something was sent.
func (w *walk) sent(t int64, before int, stage string, v via) node {
	if i := w.x.covering(t, before, stage); i >= 0 {
		return node{atMessage, i, v}
	}
	return node{}
}

// handling says what the handling of a message is time for.
func (w *walk) handling(h *record.Handled) claim {
	if h.Step == 0 || w.mine(h.Step) || w.x.message[h.Message] == expertsRead {
		return claim{cause: Stage, where: w.x.stage(h.Stage)}
	}
	return claim{cause: OtherRequest, where: w.x.whose(h.Step)}
}

// line says what the stages handled between t and where the walk stands.
func (w *walk) line(t int64) (claims []claim) {
	i, _ := slices.BinarySearchFunc(w.x.handled, t, func(h record.Handled, t int64) int { return cmp.Compare(h.BeganNS, t) })
	for i = max(0, i-1); i < len(w.x.handled) && w.x.handled[i].BeganNS < w.cur; i++ {
		h := &w.x.handled[i]
		c := w.handling(h)
		c.span = span{h.BeganNS, h.EndedNS}
		claims = append(claims, c)
	}
	return claims
}

// submissionOf returns the submission whose end a message tells.
func (x *index) submissionOf(h *record.Handled) node {
	i, _ := slices.BinarySearchFunc(x.device, h.SentNS+1, func(s record.Submission, t int64) int { return cmp.Compare(s.EndedNS, t) })
	for i--; i >= 0; i-- {
		s := &x.device[i]
		if s.Step == h.Step && s.Layer <= h.Layer && h.Layer <= s.Layer+s.More {
			return node{atSubmission, x.lastPart(i, h.SentNS), via{}}
		}
		if st := x.steps[h.Step]; st != nil && s.EndedNS < st.BeganNS {
			break
		}
	}
	return node{}
}

// lastPart returns the last part of a submission that ended by t: one of several layers may have a
// record for each of them.
func (x *index) lastPart(i int, t int64) int {
	for j := i + 1; j < len(x.device) && x.device[j].EndedNS <= t; j++ {
		if s := &x.device[j]; s.Step == x.device[i].Step && s.SubmittedNS == x.device[i].SubmittedNS {
			i = j
		}
	}
	return i
}

// readOf returns the read whose end a message tells.
func (x *index) readOf(h *record.Handled, s *step) node {
	i, _ := slices.BinarySearchFunc(x.reads, h.SentNS+1, func(r record.Read, t int64) int { return cmp.Compare(r.PlacedNS, t) })
	for i--; i >= 0 && x.reads[i].PlacedNS >= s.BeganNS; i-- {
		if r := &x.reads[i]; r.Step == h.Step && r.Layer == h.Layer {
			return node{atRead, i, via{}}
		}
	}
	return node{}
}

// resume finds the last thing before where the walk stands that the records have of the step.
func (w *walk) resume() node {
	n, end := node{}, w.floor
	for _, i := range slices.Backward(w.step.handled) {
		if h := &w.x.handled[i]; h.BeganNS < w.cur {
			n, end = node{atMessage, i, via{-1, -1}}, min(h.EndedNS, w.cur)
			break
		}
	}
	j, _ := slices.BinarySearchFunc(w.x.device, w.cur, func(s record.Submission, t int64) int { return cmp.Compare(s.EndedNS, t) })
	for j--; j >= 0 && w.x.device[j].EndedNS > end; j-- {
		if w.x.device[j].Step == w.step.Step.Step && w.x.device[j].BeganNS < w.cur {
			n, end = node{atSubmission, j, via{}}, w.x.device[j].EndedNS
			break
		}
	}
	w.put(end, append(w.waits(end), w.pending(end)...), claim{cause: Unexplained}, -1)
	return n
}
