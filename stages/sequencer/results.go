package sequencer

import (
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// results is what a request's steps have brought so far of what its caller wants.
type results struct {
	logits  []float32
	largest stages.Largest
	dump    []stages.Tensor
}

// checkResults compares the lengths of what came with what was asked for.
func (c *Core) checkResults(s *step, m *stages.LogitsReady) error {
	b := s.head.Batch
	logits, largest := stages.Widths(b.Rows, c.cfg.Vocab)
	switch {
	case !s.asked || s.logits != nil:
		return fmt.Errorf("sequencer: results of %v, which were not asked for", &s.head)
	case len(m.Logits) != logits:
		return fmt.Errorf("sequencer: %d logits for %v, want %d", len(m.Logits), &s.head, logits)
	case len(m.Largest.Logits) != largest || len(m.Largest.Tokens) != largest:
		return fmt.Errorf("sequencer: %d largest logits and %d tokens for %v, want %d of each", len(m.Largest.Logits), len(m.Largest.Tokens), &s.head, largest)
	}
	return checkDump(s, m.Dump)
}

// checkDump compares what was collected with what the step wants.
func checkDump(s *step, got []stages.Tensor) error {
	b := s.head.Batch
	if len(got) != len(b.Wants) {
		return fmt.Errorf("sequencer: %d tensors of %v, want %d", len(got), &s.head, len(b.Wants))
	}
	for i := range got {
		t, rows := &got[i], len(b.Rows)
		if t.Quantity.OfChunk() {
			rows = len(b.Segments)
		}
		if t.Want != b.Wants[i] || t.Len() != rows*t.Width {
			return fmt.Errorf("sequencer: %d numbers of %v of %v, want %d for each of %d rows of %v", t.Len(), t.Want, &s.head, t.Width, rows, b.Wants[i])
		}
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

// collect copies what a request wants beside logits from segment at of its step. One that is alone
// and whole gets it without a copy.
func (c *Core) collect(s *step, r *request, at int) {
	if len(r.msg.Wants) == 0 {
		return
	}
	g, total := s.head.Batch.Segments[at], len(r.msg.Tokens)
	if len(s.reqs) == 1 && g.Rows == total {
		r.dump = s.logits.Dump
		return
	}
	if r.dump == nil {
		r.dump = newDump(r.msg.Wants, s.logits.Dump, total)
	}
	for i := range r.dump {
		t := &r.dump[i]
		src := stages.FindTensor(s.logits.Dump, t.Want)
		switch {
		case !t.Quantity.OfChunk():
			t.CopyRows(r.done, src, g.Row, g.Rows)
		case r.done == 0 || !t.Quantity.Before():
			t.CopyRows(0, src, at, 1)
		}
	}
}

// newDump returns room for what a chunk of n tokens wants, as wide as what its steps bring.
func newDump(wants []stages.Want, as []stages.Tensor, n int) []stages.Tensor {
	all := make([]stages.Tensor, len(wants))
	for i, w := range wants {
		rows := n
		if w.Quantity.OfChunk() {
			rows = 1
		}
		all[i] = stages.NewTensor(w, stages.FindTensor(as, w).Width, rows)
	}
	return all
}

// allWants returns what either list has, in order. It makes a new list unless one of them is all.
func allWants(a, b []stages.Want) []stages.Want {
	switch {
	case len(a) == 0 || slices.Equal(a, b):
		return b
	case len(b) == 0:
		return a
	}
	return stages.SortWants(slices.Concat(a, b))
}
