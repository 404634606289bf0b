package analyse

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// layerTable has what each layer took. The head is the last, with what belongs to no layer.
type layerTable []Layer

// layers sums up by layer, what costs most first. The head is left out if nothing is known of it.
func (x *index) layers(tokens []Token) []Layer {
	m := &x.rec.Meta.Model
	t := make(layerTable, m.Layers+1)
	for i := range t {
		t[i].Layer, t[i].Kind = i, "head"
		if i < len(m.LayerKinds) {
			t[i].Kind = m.LayerKinds[i]
		}
	}
	t.costs(tokens)
	t.work(x)
	t.guesses(x)
	t = slices.DeleteFunc(t, func(l Layer) bool { return l.Layer == m.Layers && l.CostNS == 0 && l.DeviceNS == 0 })
	slices.SortStableFunc(t, func(a, b Layer) int {
		return cmp.Or(cmp.Compare(b.CostNS, a.CostNS), cmp.Compare(b.DeviceNS, a.DeviceNS))
	})
	return t
}

func (t layerTable) at(layer int32) *Layer {
	if layer < 0 || int(layer) >= len(t) {
		return &t[len(t)-1]
	}
	return &t[layer]
}

// costs adds the time for which tokens waited for a layer, by cause.
func (t layerTable) costs(tokens []Token) {
	pieces := make([][]Piece, len(t))
	for i := range tokens {
		for _, p := range tokens[i].Pieces {
			if p.Layer >= 0 && int(p.Layer) < len(t) {
				pieces[p.Layer] = append(pieces[p.Layer], p)
			}
		}
	}
	for i, p := range pieces {
		t[i].Causes = shares(p)
		for _, c := range t[i].Causes {
			t[i].CostNS += c.NS
		}
	}
}

// work adds what the device and the disk did. A submission of several layers counts for each alike.
func (t layerTable) work(x *index) {
	for i := range x.device {
		s := &x.device[i]
		if s.Step == 0 {
			continue
		}
		for k := range s.More + 1 {
			t.at(s.Layer + k).DeviceNS += (s.EndedNS - s.BeganNS - s.PausedNS) / int64(s.More+1)
		}
	}
	for i := range x.reads {
		r := &x.reads[i]
		l := t.at(r.Layer)
		l.ReadBytes += r.Bytes
		if r.BeganNS != 0 {
			l.ReadNS += r.EndedNS - r.BeganNS
		}
	}
}

// guesses adds what became of uses, guesses and slots.
func (t layerTable) guesses(x *index) {
	for i := range x.rec.Guesses {
		g := &x.rec.Guesses[i]
		l := t.at(g.Layer)
		l.Guesses++
		if g.Verdict == record.Issued {
			l.Issued++
		}
	}
	for i := range x.rec.Evictions {
		e := &x.rec.Evictions[i]
		l := t.at(e.Layer)
		l.Evictions++
		l.Wasted += int(e.Unused)
	}
	x.expertsBy(func(u *record.Use, g *record.Guess) { t.at(u.Layer).Experts.count(u, g) })
}
