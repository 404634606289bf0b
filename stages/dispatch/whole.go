package dispatch

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
)

// tables list the experts of all layers, for a device that routes by itself.
type tables struct {
	layers  []gpu.ExpertTable // [layers]; those without experts are empty
	buffers []gpu.Buffer      // where the parts of the device keep their form of them
}

func (t *tables) release() {
	for _, b := range t.buffers {
		b.Release()
	}
}

// placing says where an expert's record begins.
type placing func(layer, expert int) gpu.View

// newTables writes the tables to the device, with each expert where at says, and waits for it.
func newTables(
	cfg Config, net *network, parts []*part, queue gpu.Queue, at placing,
) (*tables, error) {
	t := &tables{layers: make([]gpu.ExpertTable, len(cfg.Model.Layers))}
	for _, p := range parts {
		if err := t.add(cfg, net, p, queue, at); err != nil {
			t.release()
			return nil, fmt.Errorf("dispatch: tables of experts: %w", err)
		}
	}
	return t, nil
}

// add writes the tables of a part's layers.
func (t *tables) add(cfg Config, net *network, p *part, queue gpu.Queue, at placing) error {
	m := cfg.Model
	moe, bytes := p.model.MoELayers(), m.NumExperts*gpu.TableBytes
	buf, err := p.dev.NewBuffer(len(moe)*bytes + 1) // there may be no such layer
	if err != nil {
		return err
	}
	t.buffers = append(t.buffers, buf)
	cmd := gpu.Commands{Part: p.index}
	for i, layer := range moe {
		layer += p.first
		table := &t.layers[layer]
		table.At = gpu.View{Buf: buf, Offset: i * bytes}
		for e := range m.NumExperts {
			one := net.expert(cfg.Layout(layer), layer, e, at(layer, e))
			table.Experts = append(table.Experts, one)
		}
		gpu.Encode(&cmd, gpu.Tabulate{Table: table})
	}
	return run(&cmd, queue)
}

// submitWhole submits layers in which only the device has a part: dense ones, and all where it
// routes by itself. Combine retires them like the last wave of any other, with no slots.
func (c *Core) submitWhole(r *recording, l *lane, m *stages.BeginLayer, out *stages.Outbox) error {
	for layer := m.Layer; layer <= m.Layer+m.More; layer++ {
		if !m.Batch.Probe.Runs(layer) {
			continue
		}
		dense := c.net.layers[layer].dense
		if dense == nil && c.large(l, m.Batch) {
			c.fetchAhead(&r.Commands, m.ID, layer)
		}
		c.encodeMixer(r, l, m.Batch, layer)
		if dense != nil {
			dense.encode(&r.Commands, l)
			gpu.Encode(&r.Commands, gpu.Add{A: l.hidden, B: l.shared, Y: l.hidden, N: l.rows * c.cfg.Model.HiddenSize})
			c.encodeNextNorm(&r.Commands, l, layer)
			l.tap(&r.Commands, stages.DumpSum, l.shared)
			l.tap(&r.Commands, stages.DumpOutput, l.hidden)
		} else {
			c.encodeRouted(r, l, m.Batch, layer)
		}
		if c.cfg.LayerTimes && c.cfg.Resident && m.More > 0 {
			gpu.Encode(&r.Commands, gpu.Mark{Tag: int32(layer)})
		}
	}
	t, err := c.submit(r)
	if err != nil {
		return err
	}
	out.Send(stages.Combine, out.Spent().WaveSubmitted(stages.WaveSubmitted{Step: m.Step, Last: true, Ticket: t, More: m.More}))
	out.Send(stages.Sequencer, out.Spent().LayerSubmitted(m.Step, m.More, nil))
	return nil
}

// encodeRouted takes a layer from the router's input to its end: router, choice, experts, sum.
func (c *Core) encodeRouted(r *recording, l *lane, b *stages.Batch, layer int) {
	w := &c.net.layers[layer]
	n := c.cfg.Model.Layers[layer].MoEIndex
	c.noteNear(l, n)
	at := n * l.rows * c.cfg.TopK
	picks, weights := l.chosen.Floats(at), l.chosenWeights.Floats(at)
	c.encodeRoute(r, l, b, layer, picks, weights)
	table := &c.tables.layers[layer]
	if c.large(l, b) {
		table = &c.transit.tables.layers[layer]
		gpu.Encode(&r.Commands, gpu.Fetched{Lane: n % gpu.FetchLanes})
	}
	c.encodeExperts(r, l, layer, table, gpu.List[int32]{At: picks})
	if w.shared != nil {
		w.shared.encode(&r.Commands, l)
	}
	c.encodeCombine(r, l, layer, gpu.List[float32]{At: weights})
	l.tapRoute(&r.Commands, picks, weights)
}

// encodeChoices brings what the device has chosen to the host, and returns where the picks will be.
func (c *Core) encodeChoices(r *recording, l *lane, step stages.Step, out *stages.Outbox) *stages.StepRouted {
	n := len(c.moe) * l.rows * c.cfg.TopK
	if !c.cfg.Resident || n == 0 {
		return nil
	}
	m := out.Spent().StepRouted(step, n)
	m.Near = append(m.Near[:0], l.near...)
	gpu.Encode(&r.Commands, gpu.Download{Src: l.chosen, Dst: gpu.IntBytes(m.Picks)})
	return m
}

// passResults passes on the end of a step.
func (c *Core) passResults(a *awaited, out *stages.Outbox) {
	if d := a.lane.dump; d != nil {
		a.logits.Dump = d.result()
	}
	if a.routed != nil {
		a.logits.Losses = c.losses(a.routed)
	}
	if a.lane.probed { // layers that it leaves out have picked nothing
		a.routed = nil
	}
	if a.routed != nil {
		c.charge(a.step.Batch, a.routed)
	}
	out.Send(stages.Sequencer, a.logits)
	if a.routed != nil {
		out.Send(stages.Router, a.routed)
	}
}

// losses finds sequences with rows that the device could not route, and the first such layer of
// each.
func (c *Core) losses(m *stages.StepRouted) (losses []stages.Loss) {
	k, rows := c.cfg.TopK, len(m.Batch.Rows)
	var lost map[stages.SeqID]bool
	for i := 0; i < len(m.Picks); i += k {
		pick := m.Picks[i]
		if pick >= 0 || !m.Batch.Probe.Runs(c.moe[i/k/rows]) {
			continue
		}
		row := i / k % rows
		seq := m.Batch.Rows[row].Seq
		if lost[seq] {
			continue
		}
		if lost == nil {
			lost = make(map[stages.SeqID]bool)
		}
		lost[seq] = true
		err := &stages.ScoreError{Row: row, Expert: int(-1 - pick)}
		losses = append(losses, stages.Loss{Seq: seq, Err: &stages.StepError{Stage: stages.Dispatch, Layer: c.moe[i/k/rows], Err: err}})
	}
	return losses
}
