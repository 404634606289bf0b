package remote

import (
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/stages"
)

const (
	// recent is how many answers say what is usual, and fewAnswers how many are too few for that.
	recent, fewAnswers = 512, 128
	// lateOne in so many answers is late: the 99th percentile.
	lateOne = 100
	// leastLate is the shortest time that counts as late: less is what a busy machine adds.
	leastLate = time.Millisecond
)

// usual is how long a host's answers to steps that decode take.
type usual struct {
	took  [recent]time.Duration // the last ones, in a ring
	n     int                   // so far
	limit time.Duration         // nearly all take no longer; 0: not known yet
}

// add takes note of an answer.
func (u *usual) add(d time.Duration) {
	u.took[u.n%recent] = d
	if u.n++; u.n >= fewAnswers && u.n%(fewAnswers/2) == 0 {
		last := slices.Clone(u.took[:min(u.n, recent)])
		slices.Sort(last)
		u.limit = max(last[len(last)-1-len(last)/lateOne], leastLate)
	}
}

// expect has expert-IO told when the answer to an ask is late, if there is another host to ask. The
// caller holds l.mu.
func (l *link) expect(a *stages.Ask, p *pending) {
	p.urgent = a.Step.Batch.Urgent
	if !p.urgent || l.usual.limit == 0 || l.c.Hosts() < 2 {
		return
	}
	id := a.ID // the ask is the stages' again when this returns
	p.late = time.AfterFunc(l.usual.limit, func() {
		l.mu.Lock()
		waits := l.pending[id] == p
		if waits {
			l.telling.Add(1)
		}
		l.mu.Unlock()
		if waits {
			defer l.telling.Done()
			l.c.cfg.Send(stages.ExpertIO, &stages.AskOverdue{Ask: id})
		}
	})
}

// arrived takes note that an ask is answered. The caller holds l.mu.
func (l *link) arrived(p *pending) {
	p.forget()
	if p.urgent {
		l.usual.add(time.Since(p.sent))
	}
}

// forget has nobody told that the answer is late.
func (p *pending) forget() {
	if p.late != nil {
		p.late.Stop()
	}
}
