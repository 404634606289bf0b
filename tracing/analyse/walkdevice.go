package analyse

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// submission goes from the end of commands to what they had to wait for: earlier commands, or the
// stage that submitted them.
func (w *walk) submission(n node) node {
	s := &w.x.device[n.i]
	w.put(s.EndedNS, w.waits(s.EndedNS), claim{cause: Mailbox}, s.Layer)
	w.put(s.BeganNS, w.overtaking(s), w.computing(s), s.Layer)
	for at := n.i; w.cur > s.SubmittedNS && w.cur > w.floor; {
		j := w.x.endedBefore(at, w.cur)
		if j < 0 || w.x.device[j].EndedNS <= s.SubmittedNS {
			break
		}
		at = j
		b := &w.x.device[j]
		if b.Device != s.Device && b.Step != s.Step {
			continue
		}
		w.put(b.EndedNS, w.starting(b.EndedNS, s.Device), claim{cause: DeviceStart}, s.Layer)
		if b.Step == s.Step || b.Step == w.step.Step.Step {
			return node{atSubmission, j, via{}}
		}
		w.put(max(b.BeganNS, s.SubmittedNS), nil, w.computing(b), s.Layer)
	}
	w.put(s.SubmittedNS, w.starting(s.SubmittedNS, s.Device), claim{cause: DeviceStart}, s.Layer)
	return w.sent(s.SubmittedNS, len(w.x.handled), "dispatch", via{s.Layer, s.Wave})
}

// endedBefore returns the last submission but number i that ended by t; -1 if there is none.
func (x *index) endedBefore(i int, t int64) int {
	j, _ := slices.BinarySearchFunc(x.device, t+1, func(s record.Submission, t int64) int { return cmp.Compare(s.EndedNS, t) })
	if j = min(j, i) - 1; j >= 0 && x.device[j].BeganNS < t {
		return j
	}
	return -1
}

// computing says what a submission is time for.
func (w *walk) computing(s *record.Submission) claim {
	if s.Step == 0 || w.mine(s.Step) {
		return claim{cause: Device, where: parts[min(int(s.Part), len(parts)-1)]}
	}
	return claim{cause: OtherRequest, where: w.x.whose(s.Step)}
}

// mine reports whether a step is the token's, or one of its sequence alone: what is left of the
// token before.
func (w *walk) mine(id uint64) bool {
	if id == w.step.Step.Step {
		return true
	}
	s := w.x.steps[id]
	return s != nil && len(s.segments) == 1 && s.segments[0].Seq == w.seq
}

var parts = [...]string{record.Mix: "mixers", record.Experts: "experts", record.Layers: "layers", record.Head: "head", record.State: "states", record.Ahead: "routers ahead", record.SharedExpert: "shared expert"}

// overtaking claims the time for which a submission stood still while urgent ones ran.
func (w *walk) overtaking(s *record.Submission) (claims []claim) {
	if s.Urgent != 0 {
		return nil
	}
	w.x.running(s.BeganNS, s.EndedNS, func(o *record.Submission) {
		if o.Urgent != 0 && o.Device == s.Device && !w.mine(o.Step) {
			c := w.computing(o)
			c.span = span{o.BeganNS, o.EndedNS}
			claims = append(claims, c)
		}
	})
	return claims
}

// busy claims what a device did for other steps within [from, to).
func (w *walk) busy(from, to int64, device uint8) (claims []claim) {
	w.x.running(from, to, func(o *record.Submission) {
		if c := w.computing(o); c.cause == OtherRequest && o.Device == device {
			c.span = span{o.BeganNS, o.EndedNS}
			claims = append(claims, c)
		}
	})
	return claims
}

// starting claims what kept a device from commands that it had, between t and where the walk
// stands: work for others, or that its goroutine ran the stages.
func (w *walk) starting(t int64, device uint8) []claim {
	return append(w.busy(t, w.cur, device), w.line(t)...)
}

// pending claims the time between t and where the walk stands in which the device had commands of
// the step: what it did for others meanwhile is OtherRequest.
func (w *walk) pending(t int64) (claims []claim) {
	for i := range w.x.device {
		s := &w.x.device[i]
		if s.Step != w.step.Step.Step || s.EndedNS <= t || s.SubmittedNS >= w.cur {
			continue
		}
		c := w.computing(s)
		c.span = span{s.BeganNS, s.EndedNS}
		claims = append(append(claims, c), w.busy(max(t, s.SubmittedNS), min(s.BeganNS, w.cur), s.Device)...)
		claims = append(claims, claim{span: span{s.SubmittedNS, s.BeganNS}, cause: DeviceStart})
	}
	return claims
}
