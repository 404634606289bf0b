package sequencer

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// beginLayers begins layers while the ring has credits, step after step in turn.
func (c *Core) beginLayers(out *stages.Outbox) {
	for {
		s, n := c.nextToBegin()
		if s == nil {
			return
		}
		head := s.head
		head.Layer = s.begun
		if s.begun == 0 {
			c.count.steps++
			c.count.rows += int64(len(head.Batch.Rows))
		}
		if !c.cfg.Resident {
			out.Send(stages.Router, out.Spent().BeginLayer(head, 0))
		}
		out.Send(stages.Dispatch, out.Spent().BeginLayer(head, n-1))
		c.noteBegun(s)
		part := c.partOf(s.begun)
		s.begun += n
		c.schedule.Begun(uint64(head.ID), n)
		s.credits[part]++
		c.flight.ring[part][s.kind]++
	}
}

// nextToBegin returns a step whose next layers may begin, and how many. Steps that decode go first.
func (c *Core) nextToBegin() (*step, int) {
	may := func(s *step) int {
		if c.full(s) {
			return 0
		}
		return c.schedule.Layers(uint64(s.head.ID), c.together(s))
	}
	for kind := range schedule.Kind(schedule.Kinds) {
		if s, n := c.flight.next(kind, c.cfg.Layers, may); s != nil {
			return s, n
		}
	}
	return nil, 0
}

// partOf returns which part of the device computes a layer.
func (c *Core) partOf(layer int) int { return c.cfg.Borders.Part(layer) }

// full reports whether the ring has no credit for the next layers of a step. Each part of the
// device has credits of its own. Where decode steps overtake others, the two kinds have, too: they
// would wait for what they are to overtake. Of several parts they have as well: a decode step that
// comes to a part would wait for credits of prompts whose reads wait until it is over.
func (c *Core) full(s *step) bool {
	r := &c.flight.ring[c.partOf(s.begun)]
	if c.cfg.Preempts || len(c.flight.ring) > 1 {
		return r[s.kind] == c.cfg.RingDepth
	}
	return r[schedule.Decode]+r[schedule.Prompt] == c.cfg.RingDepth
}

// pacing bounds the layers that begin together.
type pacing struct {
	// in rows: a step that is given up ends what has begun
	rows int
	// for each layer that has begun: the device must not finish those before the next are encoded
	ahead int
}

// In a small model on the processor, encoding a layer takes a seventh of its time. A GPU does in a
// millisecond what a processor does in a tenth of a second, stands idle for 15 µs between two
// submissions, and does a layer of one row in little more than it takes to encode it.
var onProcessor, onGPU = pacing{rows: 64, ahead: 3}, pacing{rows: 512, ahead: 2}

// together returns how many layers of a step begin with the next one and share its credit. Where
// the host has no part in a layer, single layers would only cost messages. A step begins with one,
// so that the device soon has something to do, and goes on with more: they are encoded while the
// device works, and not in its goroutine between two of its submissions. A traced step goes layer
// by layer, so that each has its times, unless the device tells them anyway. All that begin
// together are computed by the same part of the device.
func (c *Core) together(s *step) int {
	if !c.cfg.Resident || s.head.Batch.Traced && !c.cfg.LayerTimes {
		return 1
	}
	_, end := c.cfg.Borders.Range(c.cfg.Borders.Part(s.begun), c.cfg.Layers)
	p := onGPU
	if c.cfg.Preempts {
		p = onProcessor
	}
	return min(max(1, p.ahead*s.begun), max(1, p.rows/len(s.head.Batch.Rows)), end-s.begun)
}

func (c *Core) layerSubmitted(m *stages.LayerSubmitted, out *stages.Outbox) error {
	s, err := c.flight.find(m.Head())
	if err != nil {
		return c.flight.late(m.Head(), err)
	}
	if m.Layer != s.submitted || s.submitted+m.More >= s.begun {
		return fmt.Errorf("sequencer: %v and the next %d layers are submitted after %d layers, %d have begun", &m.Step, m.More, s.submitted, s.begun)
	}
	s.submitted += 1 + m.More
	c.lose(s, m.Losses, out)
	if s.submitted == c.cfg.Layers && s.failing == nil {
		s.asked = true
		c.schedule.Asked(uint64(s.head.ID))
		if c.cfg.Resident || s.wants() {
			head := s.head
			head.Layer = c.cfg.Layers
			out.Send(stages.Dispatch, out.Spent().ReadLogits(head))
		} else {
			s.logits = out.Spent().LogitsReady(s.head, 0, 0)
			c.commit(s, out) // the last layer may be retired already
		}
	}
	return nil
}

// lose notes requests that the step goes on without. If it has none left it is given up.
func (c *Core) lose(s *step, losses []stages.Loss, out *stages.Outbox) {
	for _, l := range losses {
		for _, r := range s.reqs {
			if r.seq.id == l.Seq && r.lost == nil {
				r.lost = l.Err
			}
		}
	}
	if len(losses) > 0 && s.forsaken() && s.begun < c.cfg.Layers {
		c.fail(s, losses[0].Err, out)
	}
}

func (c *Core) layerRetired(m *stages.LayerRetired, out *stages.Outbox) error {
	s, err := c.flight.find(m.Head())
	if err != nil {
		return err
	}
	if m.Layer != s.retired || s.retired+m.More >= s.begun {
		return fmt.Errorf("sequencer: %v and the next %d layers are retired after %d layers, %d have begun", &m.Step, m.More, s.retired, s.begun)
	}
	s.spent(&m.Spell)
	s.retired += 1 + m.More
	c.schedule.Retired(uint64(s.head.ID), 1+m.More)
	part := c.partOf(m.Layer)
	s.credits[part]--
	c.flight.ring[part][s.kind]--
	c.commit(s, out)
	return nil
}

func (c *Core) logitsReady(m *stages.LogitsReady, out *stages.Outbox) error {
	s, err := c.flight.find(m.Head())
	if err != nil {
		c.accounts.missed(&m.Spell)
		return c.flight.late(m.Head(), err)
	}
	if err := c.checkResults(s, m); err != nil {
		return err
	}
	s.spent(&m.Spell)
	s.logits = m
	c.lose(s, m.Losses, out)
	c.commit(s, out)
	return nil
}

// computed reports whether a step's layers are all retired and its results are here.
func (c *Core) computed(s *step) bool {
	return s.failing == nil && s.retired == c.cfg.Layers && s.logits != nil
}

// handOver ends steps that are computed and had to wait until they were due.
func (c *Core) handOver(out *stages.Outbox) {
	for _, s := range c.flight.lanes {
		if s != nil {
			c.commit(s, out)
		}
	}
}

// holds reports whether a step that is computed is handed over later. Nobody who leaves is kept.
func (c *Core) holds(s *step) bool {
	return !c.draining && !slices.ContainsFunc(s.reqs, func(r *request) bool { return r.cancel != nil }) &&
		c.schedule.Holds(uint64(s.head.ID))
}

// commit ends a step that is computed, if it is due.
func (c *Core) commit(s *step, out *stages.Outbox) {
	if !c.computed(s) || c.holds(s) {
		return
	}
	c.end(s, out)
	c.share(s, out)
	for i, r := range s.reqs {
		g := s.head.Batch.Segments[i]
		if r.lost != nil || r.told {
			c.giveUp(r, cmp.Or(r.lost, r.cancel), out)
			continue
		}
		c.collect(s, r, i)
		r.step, r.alone = nil, r.msg.Probe != nil || r.msg.Plain
		r.done += g.Rows
		c.advance(r, g, out)
		switch {
		case r.Left() == 0:
			c.finish(r, nil, out)
		case r.cancel != nil:
			c.finish(r, r.cancel, out)
		default:
			c.makeReady(r)
		}
	}
	out.Spent().LogitsDone(s.logits)
	c.spare.keepStep(s)
}

// advance notes what a step has done for a request. Its copy is made.
func (c *Core) advance(r *request, g stages.Segment, out *stages.Outbox) {
	s := r.seq
	s.Tokens = append(s.Tokens, r.msg.Tokens[r.done-g.Rows:r.done]...)
	s.Len += g.Rows
	c.slideWindow(s)
	c.search.grew(s)
	s.grant.share.Serve(g.Rows)
	c.book.Copied(r.copy)
	r.copy = stages.PageCopy{}
	c.remember(r, out)
}

// end frees the step's lane.
func (c *Core) end(s *step, out *stages.Outbox) {
	c.flight.free(s)
	c.noteEnd(s, s.failing != nil, out)
	c.schedule.Ended(uint64(s.head.ID))
	c.bill(s)
}
