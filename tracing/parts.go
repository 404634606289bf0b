package tracing

import (
	"cmp"
	"context"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// parts is the records of a step, sorted by what they tell. It points into the tree.
type parts struct {
	tree   *tree
	layers []layerParts

	asked, delivered *record.Handled // of the head
	headWork         *record.Submission
	times, head      times
	hits, misses     int
	bytes            int64 // read on demand
	issued           int64 // guesses that are read
}

// layerParts is the records of one layer. A missing record is nil.
type layerParts struct {
	begun, picked, routed, retired *record.Handled
	residents, computed            []*record.Handled // by time, which is by wave
	released                       map[int32]*record.Handled
	mix, whole                     *record.Submission // whole: of the layer alone, all of it
	waves                          map[int32]*record.Submission
	reads                          []*record.Read // on demand
	answers                        []*record.Answer
	times                          times
	hits, misses                   int
	bytes                          int64

	ctx context.Context // with the layer's span; nil if there is none
}

// missed reports whether a use counts as a miss: its expert was not in a slot, and not on its way
// there.
func missed(found record.Found) bool {
	return found == record.Missing || found == record.Away || found == record.Far
}

// parts sorts the records of a step. It is good until the next step's.
func (e *Emitter) parts(t *tree) *parts {
	p := &e.sorted
	p.reset(t, len(e.about.LayerKinds))
	for i := range t.handled {
		p.handled(&t.handled[i])
	}
	for i := range t.submissions {
		p.submitted(&t.submissions[i])
	}
	for i := range t.uses {
		if l := p.layer(t.uses[i].Layer); l != nil && missed(t.uses[i].Found) {
			l.misses++
			p.misses++
		} else if l != nil {
			l.hits++
			p.hits++
		}
	}
	for i := range t.reads {
		r := &t.reads[i]
		if l := p.layer(r.Layer); l != nil && r.Hint == 0 {
			l.reads = append(l.reads, r)
			l.bytes += r.Bytes
			p.bytes += r.Bytes
		}
	}
	for i := range t.answers {
		if l := p.layer(t.answers[i].Layer); l != nil {
			l.answers = append(l.answers, &t.answers[i])
		}
	}
	for i := range t.guesses {
		if t.guesses[i].Verdict == record.Issued {
			p.issued++
		}
	}
	for i := range p.layers {
		byTime(p.layers[i].residents)
		byTime(p.layers[i].computed)
	}
	return p
}

// reset empties p for a step of a model with some layers. It keeps the memory.
func (p *parts) reset(t *tree, layers int) {
	all := p.layers
	if all == nil {
		all = make([]layerParts, layers)
	}
	*p = parts{tree: t, layers: all}
	for i := range all {
		l := &all[i]
		clear(l.released)
		clear(l.waves)
		*l = layerParts{residents: l.residents[:0], computed: l.computed[:0], reads: l.reads[:0], answers: l.answers[:0], released: l.released, waves: l.waves}
	}
}

func (p *parts) layer(layer int32) *layerParts {
	if layer < 0 || int(layer) >= len(p.layers) {
		return nil
	}
	return &p.layers[layer]
}

// handled files what a stage did.
func (p *parts) handled(h *record.Handled) {
	what := messageKey{h.Stage, h.Message}
	switch what {
	case asked:
		p.asked = h
		return
	case delivered:
		p.delivered = h
		return
	}
	l := p.layer(h.Layer)
	if l == nil {
		return
	}
	switch what {
	case begun:
		l.begun = h
	case picked:
		l.picked = h
	case routed:
		l.routed = h
	case retired:
		l.retired = h
	case resident:
		l.residents = append(l.residents, h)
	case computed:
		l.computed = append(l.computed, h)
	case released:
		if l.released == nil {
			l.released = make(map[int32]*record.Handled)
		}
		l.released[h.Wave] = h
	}
}

// submitted files what the device worked on.
func (p *parts) submitted(s *record.Submission) {
	p.times.add(s)
	if s.Part == record.Head {
		p.head.add(s)
		p.headWork = s
		return
	}
	l := p.layer(s.Layer)
	if l == nil {
		p.head.add(s)
		return
	}
	l.times.add(s)
	switch s.Part {
	case record.Mix:
		l.mix = s
	case record.Layers:
		if s.More == 0 {
			l.whole = s
		}
	case record.Experts:
		if l.waves == nil {
			l.waves = make(map[int32]*record.Submission)
		}
		l.waves[s.Wave] = s
	}
}

// whole reports whether no record of the step is missing.
func (p *parts) whole() bool { return p.tree.lost == 0 && p.tree.over && !p.tree.failed }

// within returns the context of a layer's span, or that of the step.
func (p *parts) within(step context.Context, layer int32) context.Context {
	if l := p.layer(layer); l != nil && l.ctx != nil {
		return l.ctx
	}
	return step
}

// paired reports whether the k-th ticket of the layer belongs to its k-th wave. A queue ends its
// work in order, so it does if no record of either kind is missing.
func (l *layerParts) paired() bool {
	if len(l.residents) != len(l.computed) {
		return false
	}
	for i, w := range l.residents {
		if int(w.Wave) != i || l.computed[i].EndedNS < w.BeganNS {
			return false
		}
	}
	return true
}

func byTime(recs []*record.Handled) {
	slices.SortStableFunc(recs, func(a, b *record.Handled) int { return cmp.Compare(a.BeganNS, b.BeganNS) })
}
