package readpool

import "time"

// late is a report for Config.Overdue.
type late struct {
	req Request
	err *TimeoutError
}

// arm starts the timer that looks for late requests, unless it is running. It fires after a quarter
// of the timeout, and is not started again if nothing is queued or running then. p.mu is held.
func (p *Pool) arm() {
	if p.watching || p.cfg.Overdue == nil {
		return
	}
	p.watching = true
	every := max(p.cfg.Timeout/4, time.Millisecond)
	if p.watch == nil {
		p.watch = time.AfterFunc(every, p.look)
	} else {
		p.watch.Reset(every)
	}
}

// look reports what is late.
func (p *Pool) look() {
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return
	}
	p.watching = false
	if p.stats.Running > 0 || p.stats.Queued > 0 {
		p.arm()
	}
	found := p.lateOnes(time.Now())
	p.reports.Add(1)
	p.mu.Unlock()
	defer p.reports.Done()
	for _, l := range found {
		p.cfg.Overdue(l.req, l.err)
	}
}

// lateOnes returns the requests that have waited for another timeout since their last report. A
// speculative request waits for the disk to be free, so it is not late before it has begun. p.mu is
// held.
func (p *Pool) lateOnes(now time.Time) []late {
	var found []late
	check := func(at place) {
		n, r := &at.g.notes[at.i], &at.g.reqs[at.i]
		waited := now.Sub(n.since)
		if waited < p.cfg.Timeout*time.Duration(n.told+1) {
			return
		}
		n.told++
		p.stats.Overdue++
		found = append(found, late{*r, &TimeoutError{Layer: r.Layer, Expert: r.Expert, Waited: waited, Begun: n.begun}})
	}
	for _, at := range p.running {
		if at.g != nil {
			check(at)
		}
	}
	for at := range p.queue {
		if (UrgentDemand - Rank(at)).speculative() {
			continue
		}
		for _, h := range p.hurried[at] {
			check(h)
		}
		for g := p.queue[at].head; g != nil; g = g.next {
			for i := g.begun; i < len(g.reqs); i++ {
				if !g.notes[i].hurried {
					check(place{g, i})
				}
			}
		}
	}
	return found
}
