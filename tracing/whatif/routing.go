package whatif

import "github.com/moeflux/moeflux-actor/stages"

// callers plays a script: they ask as they did, and their rows pick what they picked.
type callers struct {
	e      *engine
	topK   int
	wide   int // of ranks
	script *script
	at     map[stages.SeqID]*ask // that a sequence evaluates
	open   map[stages.SeqID]bool
	left   int // asks without an answer
	last   int64

	forgetting *ask          // that is under way
	before     *stages.Stats // when experts were forgotten last; nil: never

	experts []int32 // memory for ranks
	missing int     // rows and layers whose ranks are not known
}

var _ routing = (*callers)(nil)

func newCallers(e *engine, s *script, topK, experts int) *callers {
	return &callers{
		e: e, topK: topK, wide: min(2*topK, experts), script: s, at: make(map[stages.SeqID]*ask), open: make(map[stages.SeqID]bool), left: len(s.asks),
	}
}

// begin has those ask that wait for nobody.
func (c *callers) begin() {
	c.e.answered = c.answered
	for _, a := range c.script.asks {
		if a.after == nil {
			c.e.at(a.delayNS, func() { c.ask(a) })
		}
	}
}

func (c *callers) ask(a *ask) {
	if a.forget {
		a.arrived = c.e.now
		c.e.post(stages.Sequencer, &stages.CollectStats{Stats: new(stages.Stats)})
		c.e.post(stages.Router, &stages.ForgetExperts{Caller: a})
		c.forgetting = a
		return
	}
	if !c.open[a.seq] {
		c.open[a.seq] = true
		c.e.post(stages.Sequencer, &stages.OpenSequence{Seq: a.seq, Caller: a})
	}
	c.at[a.seq], a.arrived = a, c.e.now
	want := stages.BestLogits
	if !a.logits {
		want = stages.NoLogits
	}
	c.e.post(stages.Sequencer, &stages.EvalChunk{Seq: a.seq, Request: a.id, Tokens: make([]int32, len(a.rows)), Logits: want, Caller: a})
}

// answered goes on with what comes after a request.
func (c *callers) answered(m stages.Message, at int64) {
	switch m := m.(type) {
	case *stages.CollectStats:
		c.before = m.Stats
	case *stages.ExpertsForgotten:
		i := &c.e.idle
		*i = idle{lacking: i.lacking, steps: i.steps}
		c.ended(c.forgetting, c.e.now)
	case *stages.ChunkEvaluated:
		if m.Err != nil {
			c.e.err = m.Err
			return
		}
		a := c.at[m.Seq]
		if a.last {
			c.e.at(c.e.now, func() { c.e.post(stages.Sequencer, &stages.CloseSequence{Seq: a.seq}) })
			delete(c.open, a.seq)
		}
		c.ended(a, at)
	}
}

// ended lets those ask that have waited for a request.
func (c *callers) ended(a *ask, at int64) {
	a.endedNS = at
	c.left--
	c.last = max(c.last, at)
	for _, next := range a.then {
		c.e.at(at+next.delayNS, func() { c.ask(next) })
	}
}

// row returns where a row of a batch is in the recording.
func (c *callers) row(b *stages.Batch, row int) rowOf {
	g := &b.Segments[b.SegmentOf(row)]
	return c.at[g.Seq].rows[g.Pos+row-g.Row-g.ChunkPos]
}

// whole returns the recorded step that a batch is, or nil: it has other rows.
func (c *callers) whole(b *stages.Batch) *step {
	first := c.row(b, 0)
	if int(first.step.rows) != len(b.Rows) {
		return nil
	}
	for i := range b.Rows {
		if r := c.row(b, i); r.step != first.step {
			return nil
		}
	}
	return first.step
}

func (c *callers) picks(b *stages.Batch, layer int, to []int32) {
	for i := range b.Rows {
		r := c.row(b, i)
		from := r.step.layers[layer].picks
		for k := range c.topK {
			e := int16(-1)
			if from != nil {
				e = from[int(r.row)*c.topK+k]
			}
			to[i*c.topK+k] = int32(max(e, 0))
		}
	}
}

func (c *callers) ranks(b *stages.Batch, layer, ahead, row int) []int32 {
	r := c.row(b, row)
	from := r.step.layers[layer].ranks[ahead-1]
	c.experts = c.experts[:0]
	if from == nil {
		c.missing++
		return nil
	}
	for _, e := range from[int(r.row)*c.wide:][:c.wide] {
		if e >= 0 {
			c.experts = append(c.experts, int32(e))
		}
	}
	return c.experts
}
