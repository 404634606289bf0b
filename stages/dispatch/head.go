package dispatch

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
)

// headRows is how many rows' logits are computed at once: a vocabulary is long, so its buffer is kept short.
const headRows = 16

// readLogits submits the end of a step: final norm and head of the rows that want them, and the last hidden states.
func (c *Core) readLogits(m *stages.ReadLogits, out *stages.Outbox) error {
	l, err := c.lane(m.Head())
	if err != nil {
		return err
	}
	l.pickRows(m.Batch)
	res := out.Spent().LogitsReady(m.Step, len(l.headRows)*c.cfg.Model.VocabSize)
	res.Hidden, res.Picks, res.Weights = l.tapped, l.picks, l.weights
	r := c.record()
	l.tap(&r.Commands, len(c.net.layers), c.cfg)
	for at := 0; at < len(l.headRows); at += headRows {
		rows := l.headRows[at:min(at+headRows, len(l.headRows))]
		c.encodeHead(&r.Commands, l, rows, res.Logits[at*c.cfg.Model.VocabSize:])
	}
	routed := c.encodeChoices(r, l, m.Step, out)
	if err := c.await(r, awaited{lane: l, step: m.Step, logits: res, routed: routed}, out); err != nil {
		c.fail(m.Step, err, out)
	}
	return nil
}

// encodeHead computes the logits of at most headRows rows into dst.
func (c *Core) encodeHead(cmd *gpu.Commands, l *lane, rows []int32, dst []float32) {
	m := c.cfg.Model
	cmd.EncodeGather(gpu.Gather{X: l.hidden, XRows: l.rows, Rows: rows, Y: l.headIn, Dim: m.HiddenSize})
	c.encodeNorm(cmd, l, l.headIn, l.headIn, c.net.finalNorm, len(rows))
	cmd.EncodeMatMul(gpu.MatMul{W: c.net.head, X: l.headIn, Y: l.logits, Rows: len(rows)})
	cmd.EncodeDownload(gpu.Download{Src: l.logits, Dst: gpu.FloatBytes(dst[:len(rows)*m.VocabSize])})
}
