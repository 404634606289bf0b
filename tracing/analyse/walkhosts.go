package analyse

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// answerOf returns the answer of an expert host that a message brings. Both have the time at which
// it was here.
func (x *index) answerOf(h *record.Handled) node {
	i, found := slices.BinarySearchFunc(x.answers, h.SentNS, func(a record.Answer, t int64) int { return cmp.Compare(a.EndedNS, t) })
	if !found {
		return node{}
	}
	return node{atAnswer, i, via{}}
}

// answer goes from the answer of an expert host to the message that asked. The host tells how long
// it did what, and not when: what it does not tell of is the network, one half of it on the way
// there and the other on the way back.
func (w *walk) answer(n node) node {
	a := &w.x.answers[n.i]
	of := func(c Cause) claim { return claim{cause: c, where: w.x.host(a.Host)} }
	if !w.mine(a.Step) { // its end let others be asked
		other := claim{cause: OtherRequest, where: w.x.whose(a.Step)}
		of = func(Cause) claim { return other }
	}
	w.put(a.EndedNS, nil, claim{cause: Mailbox}, a.Layer)
	at := a.EndedNS
	for _, part := range []struct {
		ns    int64
		cause Cause
	}{{a.NetworkNS() / 2, Network}, {a.ComputedNS, HostCompute}, {a.ReadNS, HostDisk}, {a.WaitedNS, HostWait}} {
		at = max(at-part.ns, a.AskedNS)
		w.put(at, nil, of(part.cause), a.Layer)
	}
	w.put(a.AskedNS, nil, of(Network), a.Layer)
	return w.sent(a.AskedNS, len(w.x.handled), "expert-io", via{a.Layer, -1})
}

// host returns the address of an expert host.
func (x *index) host(n int32) string {
	return cmp.Or(x.rec.Meta.Engine.Host(int(n)), "an expert host")
}
