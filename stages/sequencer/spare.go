package sequencer

import "github.com/moeflux/moeflux-actor/stages"

// spare keeps memory that a later step or request uses again.
type spare struct {
	steps    []*step
	batches  []*stages.Batch // oldest first
	requests []*request
}

// step returns a step with an empty batch, which has no credits of so many parts of the device. A
// batch that was used is used again only after as many others as there are lanes, plus one: by then
// no message can be under way that has it.
func (p *spare) step(lanes, parts int) *step {
	var s *step
	if n := len(p.steps) - 1; n >= 0 {
		s, p.steps = p.steps[n], p.steps[:n]
	} else {
		s = &step{credits: make([]int, parts)}
	}
	if len(p.batches) <= lanes {
		s.head.Batch = new(stages.Batch)
		return s
	}
	b := p.batches[0]
	copy(p.batches, p.batches[1:])
	p.batches = p.batches[:len(p.batches)-1]
	*b = stages.Batch{Rows: b.Rows[:0], Segments: b.Segments[:0], Traces: b.Traces[:0], Costs: b.Costs[:0]}
	s.head.Batch = b
	return s
}

// keepStep keeps the memory of a step that went well.
func (p *spare) keepStep(s *step) {
	p.batches = append(p.batches, s.head.Batch)
	clear(s.reqs)
	*s = step{reqs: s.reqs[:0], credits: s.credits}
	p.steps = append(p.steps, s)
}

func (p *spare) request() *request {
	n := len(p.requests) - 1
	if n < 0 {
		return new(request)
	}
	r := p.requests[n]
	p.requests = p.requests[:n]
	return r
}

func (p *spare) keepRequest(r *request) {
	*r = request{}
	p.requests = append(p.requests, r)
}
