package sequencer

import (
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// step is one step in the pipeline.
type step struct {
	head      stages.Step // Layer is left at 0
	reqs      []*request  // [len(Batch.Segments)]
	begun     int         // layers
	submitted int
	retired   int
	credits   int  // of the ring, held by layers begun and not retired
	asked     bool // ReadLogits is sent, or nobody wants anything of it
	logits    *stages.LogitsReady
	failing   error
	// the failure is no single request's fault, and what the step has done can be taken back
	retry     bool
	untouched bool // it has done nothing
}

// form makes steps of what the schedule gives while a lane is free.
func (c *Core) form(out *stages.Outbox) {
	for lane, s := range c.lanes {
		if s != nil {
			continue
		}
		shares, round := c.schedule.Next()
		out.Linger = max(out.Linger, round)
		if len(shares) == 0 {
			return
		}
		c.lanes[lane] = c.newStep(lane, shares)
	}
}

func (c *Core) newStep(lane int, shares []schedule.Share[*request]) *step {
	c.lastStep++
	s := c.emptyStep()
	s.head.Batch.Lane, s.head.ID = lane, c.lastStep
	for _, sh := range shares {
		c.addRows(s, sh.Request, sh.Rows)
	}
	return s
}

// addRows appends the next n tokens of r to the step.
func (c *Core) addRows(s *step, r *request, n int) {
	b := s.head.Batch
	b.Segments = append(b.Segments, stages.Segment{
		Seq: r.seq.id, Row: len(b.Rows), Rows: n, Pos: r.seq.len, ChunkPos: r.pos - r.before(), ChunkRows: r.before() + len(r.msg.Tokens),
		Pages: r.seq.pages[:c.pages.count(r.seq.len+n)], Copy: r.copy,
	})
	b.Traces = append(b.Traces, r.msg.Trace)
	b.Traced = b.Traced || r.msg.Trace.Sampled()
	b.Hidden = b.Hidden || r.msg.Hidden
	b.Routing = b.Routing || r.msg.Routing
	for i := range n {
		at := r.done + i
		last, want := at == len(r.msg.Tokens)-1, r.msg.Logits
		b.Rows = append(b.Rows, stages.Row{
			Seq: r.seq.id, Pos: int32(r.seq.len + i), Token: r.msg.Tokens[at],
			Logits: want == stages.AllLogits || last && want != stages.NoLogits, Best: last && want == stages.BestLogits,
		})
	}
	r.step = s
	s.reqs = append(s.reqs, r)
}

// emptyStep returns a step with an empty batch. A batch that was used is used again only after as
// many others as there are lanes, plus one: by then no message can be under way that has it.
func (c *Core) emptyStep() *step {
	var s *step
	if n := len(c.spareSteps) - 1; n >= 0 {
		s, c.spareSteps = c.spareSteps[n], c.spareSteps[:n]
	} else {
		s = new(step)
	}
	if len(c.spareBatches) <= len(c.lanes) {
		s.head.Batch = new(stages.Batch)
		return s
	}
	b := c.spareBatches[0]
	copy(c.spareBatches, c.spareBatches[1:])
	c.spareBatches = c.spareBatches[:len(c.spareBatches)-1]
	*b = stages.Batch{Rows: b.Rows[:0], Segments: b.Segments[:0], Traces: b.Traces[:0]}
	s.head.Batch = b
	return s
}

// recycle keeps the memory of a step that went well. The batch of a traced one is still read when
// its spans are made.
func (c *Core) recycle(s *step) {
	if b := s.head.Batch; !b.Traced {
		c.spareBatches = append(c.spareBatches, b)
	}
	clear(s.reqs)
	*s = step{reqs: s.reqs[:0]}
	c.spareSteps = append(c.spareSteps, s)
}

// wants reports whether the end of the step must be read back.
func (s *step) wants() bool {
	b := s.head.Batch
	if b.Hidden || b.Routing {
		return true
	}
	for i := range b.Rows {
		if b.Rows[i].Logits {
			return true
		}
	}
	return false
}
