package sequencer

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// form makes steps of what the schedule gives while a lane is free.
func (c *Core) form() {
	for lane, s := range c.flight.lanes {
		if s != nil {
			continue
		}
		kind, shares := c.schedule.Next(uint64(c.flight.last + 1))
		if len(shares) == 0 {
			return
		}
		c.flight.lanes[lane] = c.newStep(lane, kind, shares)
	}
}

func (c *Core) newStep(lane int, kind schedule.Kind, shares []schedule.Share[*request]) *step {
	c.flight.last++
	s := c.spare.step(len(c.flight.lanes), len(c.flight.ring))
	s.head.Batch.Lane, s.head.ID, s.kind = lane, c.flight.last, kind
	s.head.Batch.Urgent, s.head.Batch.Beside = kind == schedule.Decode, kind == schedule.Prompt && c.schedule.Decodes()
	if kind == schedule.Decode && c.cfg.Resident {
		bySequence(shares)
	}
	for _, sh := range shares {
		c.addRows(s, sh.Request, sh.Rows)
	}
	c.noteStep(s)
	return s
}

// bySequence sorts the rows of a decode step by sequence, so that consecutive steps have them in
// the same order: a device keeps page tables and graphs of launches for that order.
func bySequence(shares []schedule.Share[*request]) {
	slices.SortFunc(shares, func(a, b schedule.Share[*request]) int { return cmp.Compare(a.Request.seq.id, b.Request.seq.id) })
}

// addRows appends the next n tokens of r to the step.
func (c *Core) addRows(s *step, r *request, n int) {
	b := s.head.Batch
	b.Segments = append(b.Segments, stages.Segment{
		Seq: r.seq.id, Row: len(b.Rows), Rows: n, Pos: r.seq.Len, ChunkPos: r.pos - r.before(), ChunkRows: r.before() + len(r.msg.Tokens),
		Pages: r.seq.Pages[:c.book.Count(r.seq.Len+n)], Copy: r.copy,
	})
	b.Traces = append(b.Traces, r.msg.Trace)
	b.Costs = append(b.Costs, stages.Cost{})
	c.begun(r)
	b.Traced = b.Traced || r.msg.Trace.Sampled()
	b.Probe, b.Plain = r.msg.Probe, r.msg.Plain
	b.Wants = allWants(b.Wants, r.msg.Wants)
	for i := range n {
		at := r.done + i
		last, want := at == len(r.msg.Tokens)-1, r.msg.Logits
		b.Rows = append(b.Rows, stages.Row{
			Seq: r.seq.id, Pos: int32(r.seq.Len + i), Token: r.msg.Tokens[at],
			Logits: want == stages.AllLogits || last && want != stages.NoLogits, Best: last && want == stages.BestLogits,
		})
	}
	r.step = s
	s.reqs = append(s.reqs, r)
}
