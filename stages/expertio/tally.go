package expertio

import "github.com/moeflux/moeflux-actor/stages"

// tally counts the hits and misses of one load of a traced step while it is given slots: of the
// whole step, and of each segment that picked the expert.
type tally struct{ counts []stages.Matched } // [1+segments]; empty if the step is not traced

func (t *tally) begin(l *load) {
	t.counts = t.counts[:0]
	if b := l.step.Batch; b.Traced {
		for i := range 1 + len(b.Segments) {
			t.counts = append(t.counts, stages.Matched{Step: l.step, Segment: i - 1})
		}
	}
}

// add counts one use.
func (t *tally) add(l *load, use, hits, misses int) {
	if len(t.counts) == 0 {
		return
	}
	count := func(m *stages.Matched) { m.Hits, m.Misses = m.Hits+hits, m.Misses+misses }
	count(&t.counts[0])
	last := -1
	for _, pair := range l.plan.Uses[use].Pairs { // ascending
		if g := l.step.Batch.SegmentOf(int(pair) / l.plan.TopK); g != last {
			count(&t.counts[1+g])
			last = g
		}
	}
}

func (t *tally) end(out *stages.Outbox) {
	for _, m := range t.counts {
		if m.Hits+m.Misses > 0 {
			out.Matched = append(out.Matched, m)
		}
	}
	clear(t.counts)
}
