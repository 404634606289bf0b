package dispatch

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// beginLayer submits a layer's mixer and router, and after them its shared expert.
func (c *Core) beginLayer(m *stages.BeginLayer, out *stages.Outbox) error {
	if m.Layer == 0 {
		if err := c.enterLane(m.Head()); err != nil {
			return err
		}
	}
	l, err := c.lane(m.Head())
	if err != nil {
		return err
	}
	if m.Layer != l.begun || l.begun+m.More >= len(c.net.layers) || l.drain != nil {
		return fmt.Errorf("dispatch: %v and the next %d layers begin after %d layers of %d, drained: %v", &m.Step, m.More, l.begun, len(c.net.layers), l.drain != nil)
	}
	l.begun += 1 + m.More
	if m.Layer == 0 {
		if err := c.enterStates(l, m.Batch); err != nil {
			out.Send(stages.Sequencer, &stages.StepFailed{Step: m.Step, Stage: stages.Dispatch, Err: err, Untouched: true})
			return nil
		}
	}
	submit, part := c.submitRouter, record.Mix
	if c.cfg.Resident || c.net.layers[m.Layer].dense != nil || !m.Batch.Probe.Runs(m.Layer) {
		submit, part = c.submitWhole, record.Layers
	}
	p := c.partOf(m.Layer)
	if m.Layer+m.More >= p.end {
		return fmt.Errorf("dispatch: %v and the next %d layers begin together, but part %d ends before layer %d", &m.Step, m.More, p.index, p.end)
	}
	l.enter(p)
	if err := c.submitMoves(m.Batch, p.index, out); err != nil {
		c.fail(m.Step, err, out)
		return nil
	}
	r := c.record(&m.Step, part)
	r.Part = p.index
	if m.Layer == p.first {
		c.encodeEntry(r, l, m.Batch, p)
	}
	if err := submit(r, l, m, out); err != nil {
		c.fail(m.Step, err, out)
	}
	return nil
}

// submitRouter ends a layer's first half with the choice of experts and asks for it. What the
// routed experts need not wait for follows in submissions of its own, for which the device has time
// while experts are being found and read: the routers of the next layers, whose scores are the
// disk's hints, and the shared expert.
func (c *Core) submitRouter(r *recording, l *lane, m *stages.BeginLayer, out *stages.Outbox) error {
	c.encodeMixer(r, l, m.Batch, m.Layer)
	layer := &c.net.layers[m.Layer]
	a := awaited{lane: l, step: m.Step, picks: out.Spent().PicksReady(m.Step, l.rows*c.cfg.TopK, c.inputs(l.rows))}
	c.encodeRoute(r, l, m.Batch, m.Layer, l.chosen, l.chosenWeights)
	gpu.Encode(&r.Commands, gpu.Download{Src: l.chosen, Dst: gpu.IntBytes(a.picks.Picks)})
	gpu.Encode(&r.Commands, gpu.Download{Src: l.chosenWeights, Dst: gpu.FloatBytes(a.picks.Weights)})
	if len(a.picks.Inputs) > 0 {
		gpu.Encode(&r.Commands, gpu.Download{Src: l.normed, Dst: gpu.FloatBytes(a.picks.Inputs)})
	}
	l.tapRoute(&r.Commands, l.chosen, l.chosenWeights)
	if err := c.await(r, a, out); err != nil {
		return err
	}
	if err := c.submitAhead(l, m, out); err != nil || layer.shared == nil {
		return err
	}
	r = c.record(&m.Step, record.SharedExpert)
	r.Part = c.partOf(m.Layer).index
	layer.shared.encode(&r.Commands, l)
	t, err := c.submit(r)
	l.sharedDone, l.sharedID = t, c.lastTicket
	return err
}

// inputs returns how many numbers of the experts' input go up with the picks of some rows.
func (c *Core) inputs(rows int) int {
	if !c.cfg.Away {
		return 0
	}
	return rows * c.cfg.Model.HiddenSize
}

// submitAhead applies the routers of the next layers to this one's router input.
func (c *Core) submitAhead(l *lane, m *stages.BeginLayer, out *stages.Outbox) error {
	n, ahead := l.rows*c.cfg.Model.NumExperts, c.ahead(l, m.Layer)
	if ahead == 0 {
		return nil
	}
	a := awaited{lane: l, step: m.Step, ahead: out.Spent().ScoresAhead(m.Step, ahead*n)}
	r := c.record(&m.Step, record.Ahead)
	r.Part = c.partOf(m.Layer).index
	for i := range ahead {
		encodeRouter(&r.Commands, l, &c.net.layers[m.Layer+1+i])
		gpu.Encode(&r.Commands, gpu.Download{Src: l.scores, Dst: gpu.FloatBytes(a.ahead.Scores[i*n : (i+1)*n])})
	}
	return c.await(r, a, out)
}

// encodeRouter applies a layer's router to the rows.
func encodeRouter(cmd *gpu.Commands, l *lane, w *layer) {
	gpu.Encode(cmd, gpu.MatMul{W: w.router, X: l.normed, Bias: w.routerBias, Y: l.scores, Rows: l.rows, Exact: true})
}

// encodeRoute applies a layer's router to the rows and chooses their experts.
func (c *Core) encodeRoute(r *recording, l *lane, b *stages.Batch, layer int, picks, weights gpu.View) {
	if b.Probe.Chooses(layer) {
		c.encodeChosen(&r.Commands, b, picks, weights)
		return
	}
	w := &c.net.layers[layer]
	encodeRouter(&r.Commands, l, w)
	gpu.Encode(&r.Commands, gpu.Route{
		Scores: l.scores, Bias: w.bias, Picks: picks, Weights: weights, Rows: l.rows, Experts: c.cfg.Model.NumExperts, TopK: c.cfg.TopK, Rule: c.cfg.Rule,
	})
}

// ahead returns how many of the next layers are asked for their scores: those that have routers, in
// the memory of the same part of the device.
func (c *Core) ahead(l *lane, layer int) int {
	if c.settled && !c.cfg.AheadAlways || l.probed {
		return 0
	}
	n, end := 0, c.partOf(layer).end
	for l.rows <= c.cfg.AheadRows && n < c.cfg.Ahead && layer+1+n < end && c.net.layers[layer+1+n].dense == nil {
		n++
	}
	return n
}

// encodeInput embeds the rows, uploads their rotary table and runs the first layer's input norm.
func (c *Core) encodeInput(r *recording, l *lane, b *stages.Batch) {
	for i := range b.Rows {
		l.tokens[i] = b.Rows[i].Token
	}
	gpu.Encode(&r.Commands, gpu.Embed{Table: c.net.embed, Tokens: l.tokens[:l.rows], Y: l.hidden})
	c.turns(l, b)
	l.encodeTurns(r)
	c.encodeNorm(&r.Commands, l, l.hidden, l.normed, c.net.layers[0].inputNorm, l.rows)
}

// turns computes the rows' rotary tables, once a step: all parts of the device upload them.
func (c *Core) turns(l *lane, b *stages.Batch) {
	l.turned = turned{}
	if c.net.rope.channels == 0 {
		return
	}
	table := c.net.rope.table(l.angles[:0], b.Rows)
	l.turned.all = table
	if windowRotary(c.cfg.Model) > 0 {
		l.turned.windows = c.net.windowRope.table(table, b.Rows)[len(table):]
	}
	if c.net.rope.growth != nil {
		l.turned.queries = c.net.rope.queryTable(table, b.Rows)[len(table):]
	}
}

// encodeTurns uploads the rotary tables.
func (l *lane) encodeTurns(r *recording) {
	for _, t := range []struct {
		to    gpu.View
		table []float32
	}{{l.rope, l.turned.all}, {l.windowRope, l.turned.windows}, {l.queryRope, l.turned.queries}} {
		if len(t.table) > 0 {
			gpu.Encode(&r.Commands, gpu.Upload{Dst: t.to, Src: gpu.FloatBytes(t.table)})
		}
	}
}

// encodeMixer takes the normed input to the router's input: mixer, residual, post-attention norm.
// What is collected is copied where no device computes the operations around it together.
func (c *Core) encodeMixer(r *recording, l *lane, b *stages.Batch, layer int) {
	l.layer = layer
	if b.Probe.Gives(layer) && b.Probe.Experts {
		c.encodeGivenTo(&r.Commands, b, l.normed)
		l.tap(&r.Commands, stages.DumpPostNorm, l.normed)
		return
	}
	c.encodeGiven(&r.Commands, l, b, layer)
	l.tap(&r.Commands, stages.DumpInput, l.hidden)
	l.tap(&r.Commands, stages.DumpInputNorm, l.normed)
	w := &c.net.layers[layer]
	w.mixer.encode(&r.Commands, l)
	gpu.Encode(&r.Commands, gpu.Add{A: l.hidden, B: l.mixed, Y: l.hidden, N: l.rows * c.cfg.Model.HiddenSize})
	c.encodeNorm(&r.Commands, l, l.hidden, l.normed, w.postNorm, l.rows)
	if l.dump != nil {
		w.mixer.tap(&r.Commands, l)
		l.tap(&r.Commands, stages.DumpAttn, l.mixed)
		l.tap(&r.Commands, stages.DumpResidual, l.hidden)
		l.tap(&r.Commands, stages.DumpPostNorm, l.normed)
	}
}

func (c *Core) encodeNorm(cmd *gpu.Commands, l *lane, x, y, w gpu.View, rows int) {
	gpu.Encode(cmd, gpu.RMSNorm{X: x, Y: y, W: w, Vectors: rows, Dim: c.cfg.Model.HiddenSize, Eps: c.cfg.Model.RMSNormEps})
}

// ticketDone passes on what the device has computed.
func (c *Core) ticketDone(m *stages.TicketDone, out *stages.Outbox) error {
	a, ok := c.awaited[m.ID]
	if !ok {
		return fmt.Errorf("dispatch: ticket %d of %v was not awaited", m.ID, &m.Step)
	}
	delete(c.awaited, m.ID)
	c.finished(m.ID, a.part, a.urgent)
	if a.moved {
		c.moved(m.Err)
	}
	c.tellVacated(out)
	switch {
	case a.moved:
		return nil
	case a.copied != nil:
		c.copied(a.copied, m.Err, out)
		return nil
	case a.exchange != nil:
		a.exchange.Err = m.Err
		out.Answer(a.exchange.Caller, a.exchange)
		return nil
	}
	if a.ahead != nil {
		c.passAhead(&a, m.Err, out)
		return nil
	}
	a.lane.outstanding--
	switch {
	case a.lane.drain != nil:
		c.passDrain(a.lane, out)
	case m.Err != nil:
		c.fail(a.step, m.Err, out)
	case a.logits != nil:
		c.passResults(&a, out)
	case a.picks != nil:
		a.lane.scored = a.step.Layer + 1
		out.Send(stages.Router, a.picks)
	}
	return nil
}

// passAhead passes on what predicts the next layers, unless the step is over or has reached them.
func (c *Core) passAhead(a *awaited, err error, out *stages.Outbox) {
	l := a.lane
	l.aheads--
	switch {
	case l.drain != nil:
		out.Spent().Handled(a.ahead)
		c.passDrain(l, out)
	case l.step != a.step.ID || l.scored > a.step.Layer+1:
		out.Spent().Handled(a.ahead)
	case err != nil:
		c.fail(a.step, err, out)
	default:
		out.Send(stages.Router, a.ahead)
	}
}

// drainStep comes by twice: first to stop the step here, then after the last wave that expert-IO
// sent.
func (c *Core) drainStep(m *stages.DrainStep, out *stages.Outbox) error {
	l, err := c.lane(m.Head())
	if err != nil {
		return err
	}
	switch {
	case m.Hop == 0 && l.drain != nil || m.Hop != 0 && l.drain == nil:
		return fmt.Errorf("dispatch: drain of %v comes at hop %d out of turn", &m.Step, m.Hop)
	case m.Hop == 0:
		l.drain = m
		if t := l.sharedDone; t != nil {
			c.tellOf(t, l.sharedID, awaited{lane: l, step: m.Step, part: c.partOf(l.begun - 1).index, urgent: m.Batch.Urgent}, out)
			l.sharedDone = nil
		}
		c.passDrain(l, out)
	default:
		out.Send(stages.Combine, m)
	}
	return nil
}

// passDrain sends a drain on to the router once the device works at nothing of the step but waves,
// which combine waits for. The lane's next step may be one that overtakes what is left.
func (c *Core) passDrain(l *lane, out *stages.Outbox) {
	if l.outstanding == 0 && l.aheads == 0 {
		out.Send(stages.Router, l.drain)
	}
}
