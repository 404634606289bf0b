package dispatch

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// part is the layers that one device computes, and what of every state lies in its memory. A device
// that is not a gpu.Split has one part, with all layers.
type part struct {
	index      int
	dev        gpu.Device
	first, end int           // layers
	model      *model.Config // as if there were no others, see model.Config.Part
	states     *states
}

// newParts returns the parts of a device, whose borders a Config names.
func newParts(cfg Config, dev gpu.Device) ([]*part, error) {
	m, devices := cfg.Model, gpu.PartsOf(dev)
	if len(cfg.Borders)+1 != len(devices) {
		return nil, fmt.Errorf("dispatch: %d borders between layers, for %s of %d parts", len(cfg.Borders), dev.Name(), len(devices))
	}
	all := make([]*part, len(devices))
	for i, d := range devices {
		first, end := cfg.Borders.Range(i, len(m.Layers))
		if first >= end {
			return nil, fmt.Errorf("dispatch: part %d has no layers: the borders are %v", i, cfg.Borders)
		}
		p := &part{index: i, dev: d, first: first, end: end, model: m}
		if len(devices) > 1 {
			p.model = m.Part(first, end)
		}
		own := cfg
		own.Model = p.model
		p.states = newStates(own, d)
		all[i] = p
	}
	return all, nil
}

// partOf returns the part that computes a layer; the end of a step is the last one's.
func (c *Core) partOf(layer int) *part { return c.parts[c.cfg.Borders.Part(layer)] }

// enter has a lane use the memory of a part.
func (l *lane) enter(p *part) { l.bench = l.benches[p.index] }

// encodeEntry begins what a step does on a part. Pages that the step writes to, and others hold,
// are copied first. What the part before has computed of the rows moves here: the residual stream,
// the picks of all layers so far, and the positions that the last indexer has chosen.
func (c *Core) encodeEntry(r *recording, l *lane, b *stages.Batch, p *part) {
	for _, copies := range l.copies {
		encodeCopy(&r.Commands, copies.from, copies.to, p.states.layout.bytes)
	}
	if p.index == 0 {
		c.encodeInput(r, l, b)
		return
	}
	m, from := c.cfg.Model, l.benches[p.index-1]
	move := func(dst, src gpu.View, numbers int) {
		if numbers > 0 {
			r.Moves = append(r.Moves, gpu.Move{Dst: dst, Src: src, Bytes: 4 * numbers, From: p.index - 1})
		}
	}
	move(l.hidden, from.hidden, l.rows*m.HiddenSize)
	if c.cfg.Resident { // else they went up layer by layer
		move(l.chosen, from.chosen, m.Layers[p.first].MoEIndex*l.rows*c.cfg.TopK)
	}
	if m.Layers[p.first].Indexer == model.LowerIndexer {
		move(l.positions, from.positions, l.rows*m.IndexLists()*m.IndexTopK)
	}
	l.encodeTurns(r)
	c.encodeNorm(&r.Commands, l, l.hidden, l.normed, c.net.layers[p.first].inputNorm, l.rows)
}
