package whatif

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// dispatcher stands in for dispatch, with the same messages and submissions and no numbers: a
// layer's picks are what the routing says.
type dispatcher struct {
	cfg     dispatchConfig
	device  *device
	routing routing
	lanes   []lane
	settled bool
	lastID  uint64
	waits   map[uint64]waiting
}

// dispatchConfig is what it must know of the model and of the engine.
type dispatchConfig struct {
	layers, experts, topK int
	routed                []bool // [layers]
	shared                []bool // [layers] a shared expert has a submission of its own
	ahead, aheadRows      int
	lanes                 int
}

// routing says what was picked.
type routing interface {
	// picks fills what the rows of a batch pick in a layer, [rows, top-k].
	picks(b *stages.Batch, layer int, to []int32)
	// ranks returns which experts of a layer look best to a row of a batch from ahead layers
	// before, best first.
	ranks(b *stages.Batch, layer, ahead, row int) []int32
}

// lane is a step under way.
type lane struct {
	step          stages.StepID
	begun, scored int
	shared        *operation // of the layer under way
}

// waiting is what the end of an operation brings.
type waiting struct {
	step   stages.Step
	picks  *stages.PicksReady
	ahead  *stages.ScoresAhead
	logits *stages.LogitsReady
}

var _ stages.Core = (*dispatcher)(nil)

func newDispatcher(cfg dispatchConfig, d *device, r routing) *dispatcher {
	return &dispatcher{cfg: cfg, device: d, routing: r, lanes: make([]lane, cfg.lanes), waits: make(map[uint64]waiting)}
}

// Step handles one message.
func (c *dispatcher) Step(in stages.Message, out *stages.Outbox) error {
	switch m := in.(type) {
	case *stages.BeginLayer:
		return c.beginLayer(m, out)
	case *stages.TicketDone:
		return c.ticketDone(m, out)
	case *stages.WaveResident:
		c.waveResident(m, out)
	case *stages.ReadLogits:
		c.readLogits(m, out)
	case *stages.CollectStats:
		out.Send(stages.Combine, m)
	case *stages.CopyState: // states take no memory here
		out.Send(stages.Sequencer, &stages.StateCopied{Op: m.Op})
	case *stages.DropState:
	default:
		return fmt.Errorf("unexpected message %T", in)
	}
	return nil
}

// operation makes one for a step.
func operationFor(s stages.Step, p record.Part) *operation {
	return &operation{step: s, part: p, wave: -1, urgent: s.Batch.Urgent}
}

// await submits an operation and asks for its end.
func (c *dispatcher) await(o *operation, w waiting, out *stages.Outbox) {
	c.device.submit(o)
	c.lastID++
	c.waits[c.lastID] = w
	out.Awaits = append(out.Awaits, stages.Await{Step: o.step, ID: c.lastID, Ticket: o})
}

func (c *dispatcher) beginLayer(m *stages.BeginLayer, out *stages.Outbox) error {
	l := &c.lanes[m.Batch.Lane]
	if m.Layer == 0 {
		*l = lane{step: m.ID}
	}
	if m.Layer != l.begun || l.step != m.ID || m.More != 0 {
		return fmt.Errorf("%v and %d more layers begin after %d layers of step %d", &m.Step, m.More, l.begun, l.step)
	}
	l.begun++
	if !c.cfg.routed[m.Layer] {
		o := operationFor(m.Step, record.Layers)
		c.device.submit(o)
		out.Send(stages.Combine, out.Spent().WaveSubmitted(stages.WaveSubmitted{Step: m.Step, Last: true, Ticket: o}))
		out.Send(stages.Sequencer, out.Spent().LayerSubmitted(m.Step, 0, nil))
		return nil
	}
	rows := len(m.Batch.Rows)
	c.await(operationFor(m.Step, record.Mix), waiting{step: m.Step, picks: out.Spent().PicksReady(m.Step, rows*c.cfg.topK, 0)}, out)
	if n := c.ahead(rows, m.Layer); n > 0 {
		c.await(operationFor(m.Step, record.Ahead), waiting{step: m.Step, ahead: out.Spent().ScoresAhead(m.Step, n*rows*c.cfg.experts)}, out)
	}
	if c.cfg.shared[m.Layer] {
		l.shared = operationFor(m.Step, record.SharedExpert)
		c.device.submit(l.shared)
	}
	return nil
}

// ahead returns how many of the next layers are asked for their scores, as dispatch does.
func (c *dispatcher) ahead(rows, layer int) int {
	if c.settled {
		return 0
	}
	n := 0
	for rows <= c.cfg.aheadRows && n < c.cfg.ahead && layer+1+n < c.cfg.layers && c.cfg.routed[layer+1+n] {
		n++
	}
	return n
}

func (c *dispatcher) ticketDone(m *stages.TicketDone, out *stages.Outbox) error {
	w, ok := c.waits[m.ID]
	if !ok {
		return fmt.Errorf("ticket %d of %v was not awaited", m.ID, &m.Step)
	}
	delete(c.waits, m.ID)
	l := &c.lanes[w.step.Batch.Lane]
	switch {
	case w.picks != nil:
		l.scored = w.step.Layer + 1
		c.routing.picks(w.step.Batch, w.step.Layer, w.picks.Picks)
		for i := range w.picks.Weights {
			w.picks.Weights[i] = 1
		}
		out.Send(stages.Router, w.picks)
	case w.ahead != nil && (l.step != w.step.ID || l.scored > w.step.Layer+1):
		out.Spent().Handled(w.ahead)
	case w.ahead != nil:
		c.look(w.ahead)
		out.Send(stages.Router, w.ahead)
	default:
		out.Send(stages.Sequencer, w.logits)
	}
	return nil
}

// look makes scores by which the experts have the recorded ranks.
func (c *dispatcher) look(m *stages.ScoresAhead) {
	const unranked = -1e6
	rows, e := len(m.Batch.Rows), c.cfg.experts
	for i := range m.Scores {
		m.Scores[i] = unranked
	}
	for ahead := range len(m.Scores) / (rows * e) {
		for row := range rows {
			scores := m.Scores[(ahead*rows+row)*e:][:e]
			for rank, expert := range c.routing.ranks(m.Batch, m.Layer+1+ahead, 1+ahead, row) {
				scores[expert] = float32(-rank)
			}
		}
	}
}

func (c *dispatcher) waveResident(m *stages.WaveResident, out *stages.Outbox) {
	l := &c.lanes[m.Batch.Lane]
	c.settled = m.Settled
	o := operationFor(m.Step, record.Experts)
	o.wave, o.last, o.uses = m.Wave, m.Last, len(m.Uses)
	for _, u := range m.Uses {
		o.picks += len(m.Plan.Uses[u].Pairs)
	}
	c.device.submit(o)
	done := out.Spent().WaveSubmitted(stages.WaveSubmitted{Step: m.Step, Wave: m.Wave, Last: m.Last, Ticket: o, Slots: m.Slots})
	if m.Last {
		done.Plan = m.Plan
		if l.shared != nil {
			done.After, l.shared = l.shared, nil
		}
	}
	out.Send(stages.Combine, done)
	if m.Last {
		out.Send(stages.Sequencer, out.Spent().LayerSubmitted(m.Step, 0, m.Losses))
	}
}

func (c *dispatcher) readLogits(m *stages.ReadLogits, out *stages.Outbox) {
	all, largest := stages.Widths(m.Batch.Rows, 1)
	c.await(operationFor(m.Step, record.Head), waiting{step: m.Step, logits: out.Spent().LogitsReady(m.Step, all, largest)}, out)
}
