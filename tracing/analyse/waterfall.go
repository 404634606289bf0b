package analyse

import "github.com/moeflux/moeflux-actor/tracing/record"

// Waterfall is what happened for one token, layer by layer.
type Waterfall struct {
	Token  int         `json:"token"`
	FromNS int64       `json:"from_ns"`
	ToNS   int64       `json:"to_ns"`
	Rows   []Waterline `json:"rows"` // in order of layers; a layer without work has none
	Path   []Piece     `json:"-"`    // what the token spent its time on, in order
}

// Waterline is what happened for one layer.
type Waterline struct {
	Layer int    `json:"layer"`
	Name  string `json:"name"`
	Bars  []Bar  `json:"bars"`
}

// Bar is a stretch of time in which something was done. Bars may overlap.
type Bar struct {
	FromNS int64 `json:"from_ns"`
	ToNS   int64 `json:"to_ns"`
	Kind   Work  `json:"kind"`
}

// Work is what was done.
type Work uint8

// The kinds of work. Where several were done at once, the first of them is drawn.
const (
	Computing   Work = iota // by the device, for the token's step
	Reading                 // an expert that was wanted by then
	Guessing                // an expert that somebody guessed
	Queueing                // a read that no worker has taken
	Handling                // by a stage
	NothingDone             // nothing
)

var works = [...]string{"computing", "reading", "guessing", "queueing", "handling", "nothing"}

// MarshalText returns the work's name.
func (w Work) MarshalText() ([]byte, error) { return []byte(works[w]), nil }

// waterfall draws the steps of a token.
func (x *index) waterfall(t *Token) *Waterfall {
	f := &Waterfall{Token: t.Token, FromNS: t.FromNS, ToNS: t.FromNS + t.WallNS, Path: t.Pieces}
	n := x.rec.Meta.Model.Layers
	rows := make([]Waterline, n+1)
	add := func(layer int32, from, to int64, kind Work) {
		if from, to = max(from, f.FromNS), min(to, f.ToNS); from < to && layer >= 0 && int(layer) <= n {
			rows[layer].Bars = append(rows[layer].Bars, Bar{from, to, kind})
		}
	}
	steps := make(map[uint64]bool)
	for _, s := range x.stepsOf[t.Request] {
		steps[s.Step.Step] = true
		for _, i := range s.handled {
			h := &x.handled[i]
			add(h.Layer, h.BeganNS, h.EndedNS, Handling)
		}
	}
	x.running(f.FromNS, f.ToNS, func(s *record.Submission) {
		if steps[s.Step] {
			add(s.Layer, s.BeganNS, s.EndedNS, Computing)
		}
	})
	for i := range x.reads {
		if r := &x.reads[i]; r.PlacedNS > f.FromNS && r.AskedNS < f.ToNS && x.readFor(r, steps) {
			began, wanted := r.BeganNS, r.WantedNS
			if began == 0 {
				began = r.PlacedNS
			}
			if wanted == 0 {
				wanted = r.PlacedNS
			}
			add(r.Layer, r.AskedNS, began, Queueing)
			add(r.Layer, began, max(began, wanted), Guessing)
			add(r.Layer, max(began, wanted), r.PlacedNS, Reading)
		}
	}
	for i := range rows {
		if len(rows[i].Bars) > 0 {
			rows[i].Layer, rows[i].Name = i, "head"
			if i < len(x.rec.Meta.Model.LayerKinds) {
				rows[i].Name = x.rec.Meta.Model.LayerKinds[i]
			}
			f.Rows = append(f.Rows, rows[i])
		}
	}
	return f
}

// readFor reports whether a read was asked for by some steps, or used by them.
func (x *index) readFor(r *record.Read, steps map[uint64]bool) bool {
	if steps[r.Step] {
		return true
	}
	for _, u := range x.lastUse[place{r.Layer, r.Expert}] {
		if steps[u.Step] && u.AtNS >= r.AskedNS && (u.AtNS <= r.PlacedNS || r.Hint != 0 && u.Hint == r.Hint) {
			return true
		}
	}
	return false
}
