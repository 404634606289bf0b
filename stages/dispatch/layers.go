package dispatch

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
)

// beginLayer submits a layer's mixer and router, and behind them its shared expert.
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
	if m.Layer != l.begun || l.begun == len(c.net.layers) || l.drain != nil {
		return fmt.Errorf("dispatch: %v begins after %d layers of %d, drained: %v", &m.Step, l.begun, len(c.net.layers), l.drain != nil)
	}
	l.begun++
	if m.Layer == 0 {
		if err := c.states.enter(l, m.Batch); err != nil {
			c.fail(m.Step, err, out)
			return nil
		}
	}
	r := c.record()
	if m.Layer == 0 {
		for _, p := range l.copies {
			encodeCopy(&r.Commands, p.from, p.to, c.states.layout.bytes)
		}
		c.encodeInput(r, l, m.Batch)
	}
	l.tap(&r.Commands, m.Layer, c.cfg)
	c.encodeMixer(r, l, m.Layer)
	submit := c.submitRouter
	if c.net.layers[m.Layer].dense != nil {
		submit = c.submitDense
	}
	if err := submit(r, l, m, out); err != nil {
		c.fail(m.Step, err, out)
	}
	return nil
}

// submitRouter ends a layer's first half with the router's scores and asks for them. The shared expert follows in a
// submission of its own.
func (c *Core) submitRouter(r *recording, l *lane, m *stages.BeginLayer, out *stages.Outbox) error {
	layer := &c.net.layers[m.Layer]
	n, ahead := l.rows*c.cfg.Model.NumExperts, c.ahead(l, m.Layer)
	a := awaited{lane: l, step: m.Step, scores: out.Spent().ScoresReady(m.Step, n, ahead*n)}
	score := func(router gpu.Matrix, dst []float32) {
		r.EncodeMatMul(gpu.MatMul{W: router, X: l.normed, Y: l.scores, Rows: l.rows, Exact: true})
		r.EncodeDownload(gpu.Download{Src: l.scores, Dst: gpu.FloatBytes(dst)})
	}
	score(layer.router, a.scores.Scores)
	for i := range ahead {
		score(c.net.layers[m.Layer+1+i].router, a.scores.Ahead[i*n:(i+1)*n])
	}
	if err := c.await(r, a, out); err != nil || layer.shared == nil {
		return err
	}
	r = c.record()
	layer.shared.encode(&r.Commands, l)
	t, err := c.submit(r)
	l.sharedDone = t
	return err
}

// ahead returns how many of the layers behind one are asked for their scores: those next to it that have routers.
func (c *Core) ahead(l *lane, layer int) int {
	n := 0
	for l.rows <= c.cfg.AheadRows && n < c.cfg.Ahead && layer+1+n < len(c.net.layers) && c.net.layers[layer+1+n].dense == nil {
		n++
	}
	return n
}

// submitDense ends a layer without routed experts. Combine retires it like the last wave of any other, with no slots.
func (c *Core) submitDense(r *recording, l *lane, m *stages.BeginLayer, out *stages.Outbox) error {
	c.net.layers[m.Layer].dense.encode(&r.Commands, l)
	r.EncodeAdd(gpu.Add{A: l.hidden, B: l.shared, Y: l.hidden, N: l.rows * c.cfg.Model.HiddenSize})
	c.encodeNextNorm(&r.Commands, l, m.Layer)
	t, err := c.submit(r)
	if err != nil {
		return err
	}
	out.Send(stages.Combine, out.Spent().WaveSubmitted(stages.WaveSubmitted{Step: m.Step, Last: true, Ticket: t}))
	out.Send(stages.Sequencer, out.Spent().LayerSubmitted(m.Step))
	return nil
}

// encodeInput embeds the rows, uploads their rotary table and runs the first layer's input norm.
func (c *Core) encodeInput(r *recording, l *lane, b *stages.Batch) {
	for i := range b.Rows {
		l.tokens[i] = b.Rows[i].Token
	}
	r.EncodeEmbed(gpu.Embed{Table: c.net.embed, Tokens: l.tokens[:l.rows], Y: l.hidden})
	if c.net.rope.channels > 0 {
		table := c.net.rope.table(l.angles[:0], b.Rows)
		r.EncodeUpload(gpu.Upload{Dst: l.rope, Src: gpu.FloatBytes(table)})
	}
	c.encodeNorm(&r.Commands, l, l.hidden, l.normed, c.net.layers[0].inputNorm, l.rows)
}

// encodeMixer takes the normed input to the router's input: mixer, residual, post-attention norm.
func (c *Core) encodeMixer(r *recording, l *lane, layer int) {
	w := &c.net.layers[layer]
	w.mixer.encode(&r.Commands, l)
	r.EncodeAdd(gpu.Add{A: l.hidden, B: l.mixed, Y: l.hidden, N: l.rows * c.cfg.Model.HiddenSize})
	c.encodeNorm(&r.Commands, l, l.hidden, l.normed, w.postNorm, l.rows)
}

func (c *Core) encodeNorm(cmd *gpu.Commands, l *lane, x, y, w gpu.View, rows int) {
	cmd.EncodeRMSNorm(gpu.RMSNorm{X: x, Y: y, W: w, Vectors: rows, Dim: c.cfg.Model.HiddenSize, Eps: c.cfg.Model.RMSNormEps})
}

// ticketDone passes on what the device has computed.
func (c *Core) ticketDone(m *stages.TicketDone, out *stages.Outbox) error {
	a, ok := c.awaited[m.ID]
	if !ok {
		return fmt.Errorf("dispatch: ticket %d of %v was not awaited", m.ID, &m.Step)
	}
	delete(c.awaited, m.ID)
	c.finished(m.ID)
	switch {
	case a.copied != nil:
		c.copied(a.copied, m.Err, out)
		return nil
	case a.exchange != nil:
		a.exchange.Err = m.Err
		out.Answer(a.exchange.Caller, a.exchange)
		return nil
	}
	a.lane.outstanding--
	switch {
	case a.lane.drain != nil:
		c.passDrain(a.lane, out)
	case m.Err != nil:
		c.fail(a.step, m.Err, out)
	case a.logits != nil:
		out.Send(stages.Sequencer, a.logits)
	default:
		out.Send(stages.Router, a.scores)
	}
	return nil
}

// waveResident submits a wave of routed experts, and after the last one the layer's end. Each pick's output has a place of its own, and
// the layer's end sums them in the order of the picks: so waves may have any experts in any order.
func (c *Core) waveResident(m *stages.WaveResident, out *stages.Outbox) error {
	l, err := c.lane(m.Head())
	if err != nil {
		return err
	}
	if !fits(m) || m.Layer+1 != l.begun {
		return fmt.Errorf("dispatch: wave %d of %v with uses %v in slots %v does not belong to a plan of the layer under way", m.Wave, &m.Step, m.Uses, m.Slots)
	}
	if l.drain != nil {
		out.Send(stages.ExpertIO, out.Spent().SlotsReleased(m.Step, m.Wave, m.Slots))
		return nil
	}
	r := c.record()
	for i, u := range m.Uses {
		r.experts = append(r.experts, c.net.expert(c.cfg.Layout, c.slots.View(m.Slots[i]), m.Plan.Uses[u].Pairs))
	}
	r.EncodeExperts(gpu.Experts{
		X: l.normed, Y: l.routed, Scratch: l.expertScratch, Rows: l.rows, TopK: c.cfg.TopK, Experts: r.experts,
	})
	if m.Last {
		c.encodeCombine(r, l, m)
	}
	t, err := c.submit(r)
	if err != nil {
		out.Send(stages.ExpertIO, out.Spent().SlotsReleased(m.Step, m.Wave, m.Slots))
		c.fail(m.Step, err, out)
		return nil
	}
	done := out.Spent().WaveSubmitted(stages.WaveSubmitted{
		Step: m.Step, Wave: m.Wave, Last: m.Last, Ticket: t, Slots: m.Slots,
	})
	if m.Last { // the sum is right only if the shared expert's output is
		done.Plan, done.After, l.sharedDone = m.Plan, l.sharedDone, nil
	}
	out.Send(stages.Combine, done)
	if m.Last {
		l.note(c.cfg.Model.Layers[m.Layer].MoEIndex, m.Plan)
		out.Send(stages.Sequencer, out.Spent().LayerSubmitted(m.Step))
	}
	return nil
}

// fits reports whether a wave is one of its plan.
func fits(m *stages.WaveResident) bool {
	if m.Plan == nil || len(m.Uses) == 0 || len(m.Slots) != len(m.Uses) {
		return false
	}
	for i, u := range m.Uses {
		if u < 0 || int(u) >= len(m.Plan.Uses) || i > 0 && u <= m.Uses[i-1] {
			return false
		}
	}
	return true
}

// encodeCombine sums the layer's experts and the residual, and runs the next layer's input norm.
func (c *Core) encodeCombine(r *recording, l *lane, m *stages.WaveResident) {
	op := gpu.Combine{
		Routed: l.routed, Residual: l.hidden, Y: l.hidden, Weights: m.Plan.Weights, Rows: l.rows, TopK: c.cfg.TopK,
		Dim: c.cfg.Model.HiddenSize,
	}
	if shared := c.net.layers[m.Layer].shared; shared != nil {
		op.Shared = l.shared
		if shared.gated {
			op.SharedGate = l.sharedGate
		}
	}
	r.EncodeCombine(op)
	c.encodeNextNorm(&r.Commands, l, m.Layer)
}

// encodeNextNorm runs the input norm of the layer behind this one.
func (c *Core) encodeNextNorm(cmd *gpu.Commands, l *lane, layer int) {
	if next := layer + 1; next < len(c.net.layers) {
		c.encodeNorm(cmd, l, l.hidden, l.normed, c.net.layers[next].inputNorm, l.rows)
	}
}

// drainStep comes by twice: first to stop the step here, then behind the last wave that expert-IO sent.
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
		c.passDrain(l, out)
	default:
		out.Send(stages.Combine, m)
	}
	return nil
}

// passDrain sends a drain on to the router once nothing of the step is awaited here.
func (c *Core) passDrain(l *lane, out *stages.Outbox) {
	if l.outstanding == 0 {
		out.Send(stages.Router, l.drain)
	}
}
