package dispatch

import (
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// waveResident submits a wave of routed experts, and after the last one the layer's end. Each
// pick's output has a place of its own, and the layer's end sums them in the order of the picks: so
// waves may have any experts in any order.
func (c *Core) waveResident(m *stages.WaveResident, out *stages.Outbox) error {
	l, err := c.lane(m.Head())
	if err != nil {
		return err
	}
	c.settled = m.Settled
	if !fits(m) || m.Layer+1 != l.begun {
		return fmt.Errorf("dispatch: wave %d of %v with uses %v in slots %v does not belong to a plan of the layer under way", m.Wave, &m.Step, m.Uses, m.Slots)
	}
	if l.drain != nil {
		c.sendHome(m, out)
		return nil
	}
	p := c.partOf(m.Layer)
	l.enter(p)
	r := c.record(&m.Step, record.Experts)
	r.Part = p.index
	if len(m.Uses) > 0 {
		c.expertTable(r, m)
		c.encodeExperts(r, l, m.Layer, &r.wave, gpu.List[int32]{Host: r.picks})
	}
	c.encodeAnswers(r, l, m)
	if m.Last {
		c.encodeCombine(r, l, m.Layer, gpu.List[float32]{Host: m.Plan.Weights})
	}
	t, err := c.submit(r)
	if err != nil {
		c.sendHome(m, out)
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
		out.Send(stages.Sequencer, out.Spent().LayerSubmitted(m.Step, 0, m.Losses))
	}
	return nil
}

// expertTable makes the table of a wave's experts, and of the plan's picks indices into it.
func (c *Core) expertTable(r *recording, m *stages.WaveResident) {
	r.picks = slices.Grow(r.picks[:0], len(m.Plan.Picks))[:len(m.Plan.Picks)]
	for i := range r.picks {
		r.picks[i] = -1
	}
	for i, u := range m.Uses {
		use := &m.Plan.Uses[u]
		r.wave.Experts = append(r.wave.Experts, c.net.expert(c.cfg.Layout(m.Layer), m.Layer, int(use.Expert), c.slots.View(m.Slots[i])))
		for _, pair := range use.Pairs {
			r.picks[pair] = int32(i)
		}
	}
}

// encodeAnswers puts what expert hosts have computed where the device would have.
func (c *Core) encodeAnswers(r *recording, l *lane, m *stages.WaveResident) {
	n := c.cfg.Model.HiddenSize
	for i := range m.Answers {
		a := &m.Answers[i]
		for j, pair := range m.Plan.Uses[a.Use].Pairs {
			gpu.Encode(&r.Commands, gpu.Upload{Dst: l.routed.Floats(int(pair) * n), Src: gpu.FloatBytes(a.Rows[j*n : (j+1)*n])})
		}
	}
}

// encodeExperts computes the routed experts of a layer's table that the picks name.
func (c *Core) encodeExperts(r *recording, l *lane, layer int, table *gpu.ExpertTable, picks gpu.List[int32]) {
	gpu.Encode(&r.Commands, gpu.Experts{
		X: l.normed, Y: l.routed, Scratch: l.expertScratch, Rows: l.rows, TopK: c.cfg.TopK, Table: table, Picks: picks,
		Clamp: c.net.layers[layer].clamp,
	})
}

// sendHome gives back the slots of a wave that is not computed. One without slots only ends its
// layer.
func (c *Core) sendHome(m *stages.WaveResident, out *stages.Outbox) {
	if len(m.Slots) > 0 {
		out.Send(stages.ExpertIO, out.Spent().SlotsReleased(m.Step, m.Wave, m.Slots))
	}
}

// fits reports whether a wave is one of its plan. Only one that ends a layer with losses may be
// empty.
func fits(m *stages.WaveResident) bool {
	if m.Plan == nil || len(m.Uses)+len(m.Answers) == 0 && len(m.Losses) == 0 || len(m.Slots) != len(m.Uses) {
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
func (c *Core) encodeCombine(r *recording, l *lane, layer int, weights gpu.List[float32]) {
	op := gpu.Combine{
		Routed: l.routed, Residual: l.hidden, Y: l.hidden, Weights: weights, Rows: l.rows, TopK: c.cfg.TopK,
		Dim: c.cfg.Model.HiddenSize,
	}
	if shared := c.net.layers[layer].shared; shared != nil {
		op.Shared = l.shared
		if shared.gated {
			op.SharedGate = l.sharedGate
		}
	}
	gpu.Encode(&r.Commands, op)
	c.encodeNextNorm(&r.Commands, l, layer)
	if l.dump != nil {
		l.tapMoE(&r.Commands, op)
	}
}

// encodeNextNorm runs the input norm of the next layer. Another part runs that of its own first
// layer.
func (c *Core) encodeNextNorm(cmd *gpu.Commands, l *lane, layer int) {
	if next := layer + 1; next < c.partOf(layer).end {
		c.encodeNorm(cmd, l, l.hidden, l.normed, c.net.layers[next].inputNorm, l.rows)
	}
}
