package readpool

import "time"

// Rank says which reads go first: those of a higher rank.
type Rank int8

// The ranks. A guess is a read that nobody waits for yet.
const (
	Guess Rank = iota - 1
	Demand
	UrgentGuess
	UrgentDemand
	ranks int = iota
)

// index counts the ranks from the highest, 0.
func (r Rank) index() int { return int(UrgentDemand - r) }

func (r Rank) urgent() bool      { return r > Demand }
func (r Rank) speculative() bool { return r == Guess || r == UrgentGuess }

// urgentGap is how long after an urgent read the next one may well come.
const urgentGap = 50 * time.Millisecond

// urgentPause is for how long after an urgent read that somebody waited for nothing begins that is
// not urgent. In a step that misses many experts the next layer's reads come by then, and a read
// that has begun would have a part of the disk.
const urgentPause = 4 * time.Millisecond

// mayBegin reports whether a read of a rank may begin now. Demand has as many workers as suit the
// disk, and a guess begins while few reads run, so that demand waits behind little. Beside an
// urgent read, and in the pause after one, none begins that is not urgent: the disk would divide
// itself between them. And soon after one, other guesses begin one at a time. p.mu is held.
func (p *Pool) mayBegin(r Rank) bool {
	most := p.depth.most()
	switch {
	case !r.urgent() && (p.urgent > 0 || !p.demandAt.IsZero() && time.Since(p.demandAt) < urgentPause):
		return false
	case r == Guess && !p.urgentAt.IsZero() && time.Since(p.urgentAt) < urgentGap:
		most = 1
	case r.speculative():
		most = min(most, p.cfg.Speculative)
	}
	return p.stats.Running < most
}

// first returns the index of the highest rank that has something queued, or ranks. p.mu is held.
func (p *Pool) first() int {
	for i := range p.queue {
		if len(p.hurried[i]) > 0 || p.queue[i].head != nil {
			return i
		}
	}
	return ranks
}

// take waits for the next request to read and returns it. i is -1 for a group with nothing left to
// read. take reports false when the pool is closed and nothing is queued. p.mu is held.
func (p *Pool) take() (g *group, i int, ok bool) {
	for {
		at := p.first()
		switch {
		case at == ranks && p.closed:
			return nil, 0, false
		case at == ranks, !p.closed && !p.mayBegin(UrgentDemand-Rank(at)):
			p.idle++
			p.wake.Wait()
			p.idle--
		case len(p.hurried[at]) > 0:
			return p.takeHurried(at)
		default:
			if g, i, ok := p.takeGroup(&p.queue[at]); ok {
				return g, i, true
			}
		}
	}
}

// takeHurried takes the first request that has left its group for a rank.
func (p *Pool) takeHurried(at int) (g *group, i int, ok bool) {
	list := p.hurried[at]
	next := list[0]
	p.hurried[at] = append(list[:0], list[1:]...) // short: few are hurried at a time
	if p.closed {
		p.unread(next.g, next.i)
		p.stats.Queued--
		return next.g, -1, true
	}
	return next.g, next.i, true
}

// takeGroup takes the next request of the first group of a queue. It reports false if that group
// has nothing left to take.
func (p *Pool) takeGroup(q *fifo) (g *group, i int, ok bool) {
	g = q.head
	if p.closed || len(g.reqs) == 0 {
		q.pop()
		rest := p.abandon(g)
		p.stats.Queued -= rest
		// otherwise the worker with its hurried requests ends it, or has done so
		return g, -1, rest > 0 || len(g.reqs) == 0
	}
	i = g.begun
	for i < len(g.reqs) && g.notes[i].hurried {
		i++
	}
	g.begun = min(i+1, len(g.reqs))
	if g.begun == len(g.reqs) {
		q.pop()
	}
	return g, i, i < len(g.reqs)
}

// pauseOthers begins the pause after an urgent read that ended now. p.mu is held.
func (p *Pool) pauseOthers(now time.Time) {
	p.demandAt = now
	if p.pause != nil {
		p.pause.Reset(urgentPause)
		return
	}
	p.pause = time.AfterFunc(urgentPause, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.wakeNext()
	})
}

// wakeNext wakes a worker for a request that may begin: workers woken when it was queued may have
// found too many reads running and gone back to sleep. p.mu is held.
func (p *Pool) wakeNext() {
	if at := p.first(); p.idle > 0 && at < ranks && p.mayBegin(UrgentDemand-Rank(at)) {
		p.wake.Signal()
	}
}

// Hurry says that a read has come to have a higher rank: somebody waits for it now. If it has not
// begun it goes with the others of that rank, before those whose groups have it from the start;
// otherwise nothing changes.
func (p *Pool) Hurry(tag uint64, rank Rank) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := rank.index() + 1; at < ranks; at++ {
		for k, h := range p.hurried[at] {
			if h.g.reqs[h.i].Tag == tag {
				p.hurried[at] = append(p.hurried[at][:k], p.hurried[at][k+1:]...)
				p.hurry(h, rank)
				return
			}
		}
		for g := p.queue[at].head; g != nil; g = g.next {
			for i := g.begun; i < len(g.reqs); i++ {
				if g.reqs[i].Tag == tag && !g.notes[i].hurried {
					if g.rank.speculative() {
						p.stats.Hurried++
					}
					g.notes[i].hurried, g.notes[i].since = true, time.Now()
					p.hurry(place{g, i}, rank)
					return
				}
			}
		}
	}
}

func (p *Pool) hurry(at place, rank Rank) {
	at.g.notes[at.i].rank = rank
	p.hurried[rank.index()] = append(p.hurried[rank.index()], at)
	p.wake.Signal()
}

// Recall ends a speculative read that has not begun with ErrRecalled; others go on. If that ends
// its group, Recall itself calls the group's callback.
func (p *Pool) Recall(tag uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range []Rank{Guess, UrgentGuess} {
		q := &p.queue[r.index()]
		before, g, i := q.find(tag)
		if g == nil {
			continue
		}
		g.ends[i] = End{Err: ErrRecalled}
		g.notes[i].hurried = true // whoever comes to it passes it over
		g.left--
		p.stats.Queued--
		p.stats.Recalled++
		if g.left == 0 {
			q.cut(before, g)
			p.mu.Unlock()
			g.done(g.ends)
			p.mu.Lock()
			p.recycle(g)
		}
		return
	}
}
