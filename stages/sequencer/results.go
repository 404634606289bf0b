package sequencer

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// results is what a request's steps have brought so far of what its caller wants.
type results struct {
	logits  []float32
	largest stages.Largest
	hidden  []float32 // [layers+1, tokens, hidden]
	picks   []int32   // [layers, tokens, TopK]
	weights []float32
}

// checkResults compares the lengths of what came with what was asked for.
func (c *Core) checkResults(s *step, m *stages.LogitsReady) error {
	b := s.head.Batch
	logits, largest := stages.Widths(b.Rows, c.cfg.Vocab)
	hidden, picks := 0, 0
	if b.Hidden {
		hidden = (c.cfg.Layers + 1) * len(b.Rows) * c.cfg.Hidden
	}
	if b.Routing {
		picks = c.cfg.MoELayers * len(b.Rows) * c.cfg.TopK
	}
	switch {
	case !s.asked || s.logits != nil:
		return fmt.Errorf("sequencer: results of %v, which were not asked for", &s.head)
	case len(m.Logits) != logits || len(m.Hidden) != hidden || len(m.Picks) != picks || len(m.Weights) != picks:
		return fmt.Errorf("sequencer: %d logits, %d hidden, %d picks, %d weights for %v, want %d, %d, %d, %d",
			len(m.Logits), len(m.Hidden), len(m.Picks), len(m.Weights), &s.head, logits, hidden, picks, picks)
	case len(m.Largest.Logits) != largest || len(m.Largest.Tokens) != largest:
		return fmt.Errorf("sequencer: %d largest logits and %d tokens for %v, want %d of each", len(m.Largest.Logits), len(m.Largest.Tokens), &s.head, largest)
	}
	return nil
}

// share gives each request its rows of the step's logits. One that is alone and has none yet gets
// them without a copy.
func (c *Core) share(s *step, out *stages.Outbox) {
	logits, largest := s.logits.Logits, s.logits.Largest
	if r := s.reqs[0]; len(s.reqs) == 1 && r.logits == nil {
		if len(logits) > 0 {
			r.logits = logits
		}
		r.largest = largest
		return
	}
	for i, r := range s.reqs {
		g := s.head.Batch.Segments[i]
		n, k := stages.Widths(s.head.Batch.Rows[g.Row:g.Row+g.Rows], c.cfg.Vocab)
		if r.logits == nil && n > 0 {
			r.logits = out.Spent().Floats(n)[:0]
		}
		r.logits = append(r.logits, logits[:n]...)
		logits = logits[n:]
		if k > 0 { // of the chunk's last row: there is nothing yet
			r.largest = out.Spent().Largest(k)
			copy(r.largest.Logits, largest.Logits)
			copy(r.largest.Tokens, largest.Tokens)
			largest = stages.Largest{Logits: largest.Logits[k:], Tokens: largest.Tokens[k:]}
		}
	}
	c.floatsDone(s.logits.Logits, out)
	out.Spent().LargestDone(s.logits.Largest)
}

// keepRows is how many rows' logits a slice may hold that is kept for other answers.
const keepRows = 16

// floatsDone gives back a slice of logits, unless it is a large one.
func (c *Core) floatsDone(f []float32, out *stages.Outbox) {
	if cap(f) <= keepRows*c.cfg.Vocab {
		out.Spent().FloatsDone(f)
	}
}

// collect copies the hidden states and the routing of a segment to its request.
func (c *Core) collect(s *step, r *request, g stages.Segment) {
	rows, total := len(s.head.Batch.Rows), len(r.msg.Tokens)
	if r.msg.Hidden {
		if r.hidden == nil {
			r.hidden = make([]float32, (c.cfg.Layers+1)*total*c.cfg.Hidden)
		}
		copyRows(r.hidden, s.logits.Hidden, c.cfg.Layers+1, c.cfg.Hidden, total, r.done, rows, g)
	}
	if r.msg.Routing {
		if r.picks == nil {
			r.picks = make([]int32, c.cfg.MoELayers*total*c.cfg.TopK)
			r.weights = make([]float32, c.cfg.MoELayers*total*c.cfg.TopK)
		}
		copyRows(r.picks, s.logits.Picks, c.cfg.MoELayers, c.cfg.TopK, total, r.done, rows, g)
		copyRows(r.weights, s.logits.Weights, c.cfg.MoELayers, c.cfg.TopK, total, r.done, rows, g)
	}
}

// copyRows copies a segment's rows of src [planes, rows, width] to dst [planes, total, width] from
// row at on.
func copyRows[T any](dst, src []T, planes, width, total, at, rows int, g stages.Segment) {
	for p := range planes {
		copy(dst[(p*total+at)*width:][:g.Rows*width], src[(p*rows+g.Row)*width:][:g.Rows*width])
	}
}
