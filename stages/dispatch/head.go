package dispatch

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// headRows is how many rows' logits are computed at once: a vocabulary is long, so its buffer is
// kept short.
const headRows = 32

// readLogits submits the end of a step: final norm and head of the rows that want them, and the
// last hidden states.
func (c *Core) readLogits(m *stages.ReadLogits, out *stages.Outbox) error {
	l, err := c.lane(m.Head())
	if err != nil {
		return err
	}
	l.pickRows(m.Batch)
	all, largest := stages.Widths(m.Batch.Rows, c.cfg.Model.VocabSize)
	res := out.Spent().LogitsReady(m.Step, all, largest)
	p := c.partOf(len(c.net.layers))
	l.enter(p)
	r := c.record(&m.Step, record.Head)
	r.Part, l.layer = p.index, len(c.net.layers)
	c.encodeGiven(&r.Commands, l, m.Batch, l.layer)
	l.tap(&r.Commands, stages.DumpInput, l.hidden)
	rest := headResults{res.Logits, res.Largest}
	for at := 0; at < len(l.headRows); at += headRows {
		c.encodeHead(&r.Commands, l, m.Batch, l.headRows[at:min(at+headRows, len(l.headRows))], &rest)
	}
	routed := c.encodeChoices(r, l, m.Step, out)
	if err := c.await(r, awaited{lane: l, step: m.Step, logits: res, routed: routed}, out); err != nil {
		c.fail(m.Step, err, out)
	}
	return nil
}

// headResults is where the logits of rows that are not encoded yet are to be.
type headResults struct {
	logits  []float32
	largest stages.Largest
}

// encodeHead computes the logits of at most headRows rows of a batch. What is wanted of them comes
// to the beginning of dst, of which the rest stays.
func (c *Core) encodeHead(cmd *gpu.Commands, l *lane, b *stages.Batch, rows []int32, dst *headResults) {
	m := c.cfg.Model
	gpu.Encode(cmd, gpu.Gather{X: l.hidden, XRows: l.rows, Rows: rows, Y: l.headIn, Dim: m.HiddenSize})
	c.encodeNorm(cmd, l, l.headIn, l.headIn, c.net.finalNorm, len(rows))
	gpu.Encode(cmd, gpu.MatMul{W: c.net.head, X: l.headIn, Y: l.logits, Rows: len(rows)})
	for i, row := range rows {
		l.tapRows(cmd, stages.DumpFinalNorm, int(row), 1, l.headIn.Floats(i*m.HiddenSize))
	}
	for i := 0; i < len(rows); {
		best, n := b.Rows[rows[i]].Best, 1
		for i+n < len(rows) && b.Rows[rows[i+n]].Best == best {
			n++
		}
		if best {
			c.encodeLargest(cmd, l, i, n, &dst.largest)
		} else {
			gpu.Encode(cmd, gpu.Download{Src: l.logits.Floats(i * m.VocabSize), Dst: gpu.FloatBytes(dst.logits[:n*m.VocabSize])})
			dst.logits = dst.logits[n*m.VocabSize:]
		}
		i += n
	}
}

// encodeLargest finds the largest logits of n rows of the head from row first on.
func (c *Core) encodeLargest(cmd *gpu.Commands, l *lane, first, n int, dst *stages.Largest) {
	vocab := c.cfg.Model.VocabSize
	k := stages.BestOf(vocab)
	gpu.Encode(cmd, gpu.TopK{Logits: l.logits.Floats(first * vocab), Values: l.best.Floats(first * k), Indices: l.bestTokens.Floats(first * k),
		Stats: l.bestStats.Floats(first * 2), Rows: n, Vocab: vocab, K: k})
	gpu.Encode(cmd, gpu.Download{Src: l.best.Floats(first * k), Dst: gpu.FloatBytes(dst.Logits[:n*k])})
	gpu.Encode(cmd, gpu.Download{Src: l.bestTokens.Floats(first * k), Dst: gpu.IntBytes(dst.Tokens[:n*k])})
	dst.Logits, dst.Tokens = dst.Logits[n*k:], dst.Tokens[n*k:]
}
