package sequencer

import "github.com/moeflux/moeflux-actor/stages"

// accounts says what requests have been given and what that cost.
type accounts struct {
	ended stages.Account // of requests that are over
	late  stages.Cost    // what was told of steps that are over: nobody's
	now   int64          // when the latest message was sent, on the engine's clock
}

// tick notes when a message was sent.
func (a *accounts) tick(in stages.Message) {
	a.now = max(a.now, in.Stamped())
}

// spent shares the time of a step among its rows.
func (s *step) spent(t *stages.Spell) {
	if t.DeviceNS == 0 && t.DiskWaitNS == 0 {
		return
	}
	b := s.head.Batch
	for i := range b.Segments {
		g, cost := &b.Segments[i], &b.Costs[i]
		cost.DeviceNS += stages.Share(t.DeviceNS, g.Row, g.Row+g.Rows, len(b.Rows))
		cost.DiskWaitNS += stages.Share(t.DiskWaitNS, g.Row, g.Row+g.Rows, len(b.Rows))
	}
}

// missed notes how long a step took that is over by now.
func (a *accounts) missed(t *stages.Spell) {
	a.late.DeviceNS += t.DeviceNS
	a.late.DiskWaitNS += t.DiskWaitNS
}

// bill adds what a step has cost to its requests' accounts.
func (c *Core) bill(s *step) {
	for i, r := range s.reqs {
		r.account.Cost.Add(&s.head.Batch.Costs[i])
	}
}

// begun notes that a request has come into a step.
func (c *Core) begun(r *request) {
	if r.account.Requests == 0 {
		r.account.Requests = 1
		r.began = c.notes.now
		r.account.QueueNS = c.accounts.now - r.msg.SentNS
	}
}

// account returns a request's account as it stands, or as it is with an answer.
func (c *Core) account(r *request, answered bool) stages.Account {
	a := r.account
	a.Requests = 1
	a.Read = int64(r.done)
	a.TotalNS = c.accounts.now - r.msg.SentNS
	if r.account.Requests == 0 { // it was never in a step
		a.QueueNS = a.TotalNS
	}
	if answered && r.msg.Logits != stages.NoLogits {
		a.Generated = 1
	}
	return a
}

// close adds a request that is over to what its sequence and the engine have had.
func (a *accounts) close(s *sequence, last *stages.Account) {
	s.account.Add(last)
	a.ended.Add(last)
}

// reuse notes that a sequence has taken over n tokens of a text.
func (a *accounts) reuse(s *sequence, n int) {
	s.account.Reused += int64(n)
	a.ended.Reused += int64(n)
}

// Accounts returns what requests have been given and what that cost, those under way included, and
// what came too late to belong to one.
func (c *Core) Accounts() (requests stages.Account, late stages.Cost) {
	requests = c.accounts.ended
	for _, s := range c.seqs {
		if s.req != nil {
			a := c.account(s.req, false)
			requests.Add(&a)
		}
	}
	for _, s := range c.flight.lanes {
		if s != nil {
			for i := range s.head.Batch.Costs {
				requests.Cost.Add(&s.head.Batch.Costs[i])
			}
		}
	}
	return requests, c.accounts.late
}
