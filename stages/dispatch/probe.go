package dispatch

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
)

// encodeGiven puts what a probe gives to a layer in the place of the residual stream, and runs its
// input norm. Layers that are left out have not run it.
func (c *Core) encodeGiven(cmd *gpu.Commands, l *lane, b *stages.Batch, layer int) {
	if b.Probe == nil {
		return
	}
	if b.Probe.Gives(layer) && !b.Probe.Experts {
		c.encodeGivenTo(cmd, b, l.hidden)
	}
	if layer < len(c.net.layers) {
		c.encodeNorm(cmd, l, l.hidden, l.normed, c.net.layers[layer].inputNorm, l.rows)
	}
}

// encodeGivenTo uploads the rows that a probe gives.
func (c *Core) encodeGivenTo(cmd *gpu.Commands, b *stages.Batch, to gpu.View) {
	dim := c.cfg.Model.HiddenSize
	first, at, rows := b.GivenRows(len(b.Probe.Given) / dim)
	if rows > 0 {
		gpu.Encode(cmd, gpu.Upload{Dst: to.Floats(first * dim), Src: gpu.FloatBytes(b.Probe.Given[at*dim : (at+rows)*dim])})
	}
}

// encodeChosen puts what a probe gives in the place of a router's choice.
func (c *Core) encodeChosen(cmd *gpu.Commands, b *stages.Batch, picks, weights gpu.View) {
	p, k := b.Probe, c.cfg.TopK
	_, at, rows := b.GivenRows(len(p.Picks) / k)
	gpu.Encode(cmd, gpu.Upload{Dst: picks, Src: gpu.IntBytes(p.Picks[at*k : (at+rows)*k])})
	gpu.Encode(cmd, gpu.Upload{Dst: weights, Src: gpu.FloatBytes(p.Weights[at*k : (at+rows)*k])})
}
