package dispatch

import (
	"slices"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
)

// headRows is how many rows' logits are computed at once: a vocabulary is long, so its buffer is
// kept short.
const headRows = 16

// readLogits submits the end of a step: final norm and head of the rows that want them, and the
// last hidden states.
func (c *Core) readLogits(m *stages.ReadLogits, out *stages.Outbox) error {
	l, err := c.lane(m.Head())
	if err != nil {
		return err
	}
	l.pickRows(m.Batch)
	vocab, n := c.cfg.Model.VocabSize, 0
	for _, at := range l.headRows {
		n += m.Batch.Rows[at].Width(vocab)
	}
	res := out.Spent().LogitsReady(m.Step, n)
	res.Hidden, res.Picks, res.Weights = l.tapped, l.picks, l.weights
	r := c.record()
	l.tap(&r.Commands, len(c.net.layers), c.cfg)
	l.bestRead = l.bestRead[:0]
	dst := res.Logits
	for at := 0; at < len(l.headRows); at += headRows {
		dst = c.encodeHead(&r.Commands, l, m.Batch, l.headRows[at:min(at+headRows, len(l.headRows))], dst)
	}
	routed := c.encodeChoices(r, l, m.Step, out)
	if err := c.await(r, awaited{lane: l, step: m.Step, logits: res, routed: routed}, out); err != nil {
		c.fail(m.Step, err, out)
	}
	return nil
}

// encodeHead computes the logits of at most headRows rows of a batch. What is wanted of them comes
// to the beginning of dst, whose rest it returns.
func (c *Core) encodeHead(cmd *gpu.Commands, l *lane, b *stages.Batch, rows []int32, dst []float32) []float32 {
	m := c.cfg.Model
	cmd.EncodeGather(gpu.Gather{X: l.hidden, XRows: l.rows, Rows: rows, Y: l.headIn, Dim: m.HiddenSize})
	c.encodeNorm(cmd, l, l.headIn, l.headIn, c.net.finalNorm, len(rows))
	cmd.EncodeMatMul(gpu.MatMul{W: c.net.head, X: l.headIn, Y: l.logits, Rows: len(rows)})
	for i := 0; i < len(rows); {
		best, n := b.Rows[rows[i]].Best, 1
		for i+n < len(rows) && b.Rows[rows[i+n]].Best == best {
			n++
		}
		if best {
			dst = c.encodeBest(cmd, l, i, n, dst)
		} else {
			cmd.EncodeDownload(gpu.Download{Src: l.logits.Floats(i * m.VocabSize), Dst: gpu.FloatBytes(dst[:n*m.VocabSize])})
			dst = dst[n*m.VocabSize:]
		}
		i += n
	}
	return dst
}

// bestRows is rows of which the largest logits alone are wanted, as they come from the device.
type bestRows struct {
	dst            []float32 // [rows, 2, BestOf(vocab)], where they are to be
	values, tokens []float32 // [rows, BestOf(vocab)]; tokens are the bits of int32
}

// encodeBest finds the largest logits of n rows of the head from row first on.
func (c *Core) encodeBest(cmd *gpu.Commands, l *lane, first, n int, dst []float32) []float32 {
	vocab := c.cfg.Model.VocabSize
	k := stages.BestOf(vocab)
	cmd.EncodeTopK(gpu.TopK{Logits: l.logits.Floats(first * vocab), Values: l.best.Floats(first * k), Indices: l.bestTokens.Floats(first * k),
		Stats: l.bestStats.Floats(first * 2), Rows: n, Vocab: vocab, K: k})
	i := len(l.bestRead)
	l.bestRead = slices.Grow(l.bestRead, 1)[:i+1]
	r := &l.bestRead[i]
	r.dst = dst[:2*n*k]
	r.values, r.tokens = slices.Grow(r.values[:0], n*k)[:n*k], slices.Grow(r.tokens[:0], n*k)[:n*k]
	cmd.EncodeDownload(gpu.Download{Src: l.best.Floats(first * k), Dst: gpu.FloatBytes(r.values)})
	cmd.EncodeDownload(gpu.Download{Src: l.bestTokens.Floats(first * k), Dst: gpu.FloatBytes(r.tokens)})
	return dst[2*n*k:]
}

// placeBest puts the largest logits where they are to be. They are here.
func (c *Core) placeBest(l *lane) {
	k := stages.BestOf(c.cfg.Model.VocabSize)
	for _, r := range l.bestRead {
		for row := 0; row*k < len(r.values); row++ {
			copy(r.dst[2*row*k:], r.values[row*k:][:k])
			copy(r.dst[(2*row+1)*k:], r.tokens[row*k:][:k])
		}
	}
}
