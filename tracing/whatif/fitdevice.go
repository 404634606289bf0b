package whatif

import (
	"math"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// device fits laws for work that was not recorded.
func (o *observed) device() {
	var few, many waveFit
	for i := range o.mix {
		o.mix[i] = make(byRows)
	}
	for _, s := range o.steps {
		for i := range s.layers {
			l := &s.layers[i]
			o.mix[record.Mix].add(i, s.rows, l.mixNS)
			o.mix[record.Ahead].add(i, s.rows, l.aheadNS)
			o.mix[record.SharedExpert].add(i, s.rows, l.shareNS)
			for _, w := range l.waves {
				if s.rows <= fewRows {
					few.add(w)
				} else {
					many.add(w)
				}
			}
		}
		o.mix[record.Head].add(0, s.rows, s.headNS)
	}
	o.waves = [2]waveLaw{few.law(), many.law()}
	if many.n == 0 {
		o.waves[1] = o.waves[0]
	}
	if few.n == 0 {
		o.waves[0] = o.waves[1]
	}
	for _, s := range o.steps {
		for i := range s.layers {
			l := &s.layers[i]
			law, took := 0.0, 0.0
			for _, w := range l.waves {
				law, took = law+o.waveLaw(int(s.rows)).of(w), took+w.ns
			}
			l.restNS = 1
			if law > 0 {
				l.restNS = took / law
			}
		}
	}
}

func (o *observed) waveLaw(rows int) *waveLaw {
	if rows <= fewRows {
		return &o.waves[0]
	}
	return &o.waves[1]
}

// takes returns what the device takes for an operation, while nothing is read. s is the recorded
// step that its step is, or nil.
func (o *observed) takes(op *operation, s *step) float64 {
	rows := int32(len(op.step.Batch.Rows))
	if op.part == record.Head {
		if s != nil && s.headNS > 0 {
			return s.headNS
		}
		return o.mix[record.Head].at(0, rows)
	}
	at := op.step.Layer
	var l *layer
	if s != nil {
		l = &s.layers[at]
	}
	known := 0.0
	switch part := op.part; part {
	case record.Experts:
		w := wave{uses: int32(op.uses), picks: int32(op.picks), last: op.last}
		if l == nil || len(l.waves) == 0 {
			return o.waveLaw(int(rows)).of(w)
		}
		if op.wave < len(l.waves) {
			if was := l.waves[op.wave]; was.uses == w.uses && was.picks == w.picks && was.last == w.last {
				return was.ns
			}
		}
		return o.waveLaw(int(rows)).of(w) * l.restNS
	case record.Ahead:
		if l != nil {
			known = l.aheadNS
		}
	case record.SharedExpert:
		if l != nil {
			known = l.shareNS
		}
	default:
		if l != nil {
			known = l.mixNS
		}
		if known == 0 {
			return o.mix[record.Mix].at(at, rows)
		}
	}
	if known > 0 {
		return known
	}
	return o.mix[op.part].at(at, rows)
}

// byRows is what a part of a layer takes, by layer and rows.
type byRows map[int32]map[int]*mean

type mean struct{ sum, n float64 }

func (b byRows) add(layer int, rows int32, ns float64) {
	if ns <= 0 {
		return
	}
	if b[rows] == nil {
		b[rows] = make(map[int]*mean)
	}
	m := b[rows][layer]
	if m == nil {
		m = new(mean)
		b[rows][layer] = m
	}
	m.sum, m.n = m.sum+ns, m.n+1
}

// at returns what is to be expected: of a number of rows that was not recorded, in proportion
// between, below and above those that were.
func (b byRows) at(layer int, rows int32) float64 {
	below, above := int32(-1), int32(math.MaxInt32)
	for n, of := range b {
		if of[layer] == nil {
			continue
		}
		if n <= rows && n > below {
			below = n
		}
		if n >= rows && n < above {
			above = n
		}
	}
	of := func(n int32) float64 { m := b[n][layer]; return m.sum / m.n }
	switch {
	case below < 0 && above == math.MaxInt32:
		return 0
	case below < 0:
		return of(above)
	case above == math.MaxInt32:
		return of(below) * float64(rows) / float64(below)
	case below == above:
		return of(below)
	}
	share := float64(rows-below) / float64(above-below)
	return of(below)*(1-share) + of(above)*share
}
