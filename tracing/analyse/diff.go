package analyse

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/internal/signedrank"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Diff says what changed from one recording to another: for each token that was decoded, and what
// of that was for which cause, stage and layer.
type Diff struct {
	A, B Run `json:"-"`
	// Tokens is how many were compared, in order: the first that was decoded in A with the first in
	// B, and so on.
	Tokens   int       `json:"tokens"`
	Settings []Setting `json:"settings,omitempty"` // that differ
	Wall     Change    `json:"wall"`
	Causes   []Change  `json:"causes"` // the largest change first, as in what follows
	Stages   []Change  `json:"stages"` // the time for which they handled messages
	Layers   []Change  `json:"layers"` // the time for which tokens waited for them
	// Experts is what was found of the experts of all tokens.
	ExpertsA Experts `json:"experts_a"`
	ExpertsB Experts `json:"experts_b"`
}

// Run is one of two recordings.
type Run struct {
	Tokens int
	Missing
}

// Setting is a setting that differs.
type Setting struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// Change is how a time of a token differs.
type Change struct {
	Name string `json:"name"`
	A    Spread `json:"a"`
	B    Spread `json:"b"`
	// NS is how much more B takes in the middle: the median of the differences of pairs.
	NS int64 `json:"ns"`
	// P is the chance that differences as clear as these come about where nothing has changed.
	P float64 `json:"p"`
	// Beyond says that the difference is beyond the spread: P is at most 5 %.
	Beyond bool `json:"beyond_spread"`
}

// Spread is a time of tokens in nanoseconds: the middle, and a quarter from either end.
type Spread struct {
	Median int64 `json:"median_ns"`
	Low    int64 `json:"low_ns"`
	High   int64 `json:"high_ns"`
}

// ErrNothingToCompare reports recordings without decoded tokens.
var ErrNothingToCompare = errors.New("there is no decoded token in one of the records")

// significant is how small P must be.
const significant = 0.05

// Compare says what changed from a to b.
func Compare(a, b *record.Recording) (*Diff, error) {
	x, y := newIndex(a), newIndex(b)
	s, r := x.sample(), y.sample()
	n := min(len(s.tokens), len(r.tokens))
	if n == 0 {
		return nil, ErrNothingToCompare
	}
	d := &Diff{
		A: Run{len(s.tokens), Missing{a.Forgotten, a.Cut}}, B: Run{len(r.tokens), Missing{b.Forgotten, b.Cut}}, Tokens: n, Settings: settings(a.Meta.Settings, b.Meta.Settings),
		ExpertsA: x.experts(func(*record.Use) bool { return true }), ExpertsB: y.experts(func(*record.Use) bool { return true }),
	}
	d.Wall = change("wall", s.wall, r.wall)
	for c := range NumCauses {
		d.Causes = append(d.Causes, change(Cause(c).String(), s.causes[c], r.causes[c]))
	}
	for _, stage := range bothNames(x.stages, y.stages) {
		d.Stages = append(d.Stages, change(stage, s.stages[stage], r.stages[stage]))
	}
	for l := range max(len(s.layers), len(r.layers)) {
		d.Layers = append(d.Layers, change(fmt.Sprint(l), at(s.layers, l), at(r.layers, l)))
	}
	for _, list := range []*[]Change{&d.Causes, &d.Stages, &d.Layers} {
		*list = slices.DeleteFunc(*list, func(c Change) bool { return c.A == Spread{} && c.B == Spread{} && c.NS == 0 })
		slices.SortStableFunc(*list, func(a, b Change) int { return cmp.Compare(abs(b.NS), abs(a.NS)) })
	}
	return d, nil
}

// mostPairs is how many pairs are tested: enough for P to be as small as one in two thousand, and
// few enough for the exact test to take no time.
const mostPairs = 12

// sample is the times of the tokens of a recording that were decoded: [tokens] each.
type sample struct {
	tokens []*Token
	wall   []int64
	causes [NumCauses][]int64
	stages map[string][]int64
	layers [][]int64
}

// sample gathers the times of decoded tokens, in order of their answers.
func (x *index) sample() *sample {
	s := &sample{stages: make(map[string][]int64), layers: make([][]int64, x.rec.Meta.Model.Layers+1)}
	all := x.tokens()
	for i := range all {
		t := &all[i]
		if t.Rows != 1 || t.Outcome != outcomes[record.Answered] {
			continue
		}
		s.tokens, s.wall = append(s.tokens, t), append(s.wall, t.WallNS)
		var causes [NumCauses]int64
		layers := make([]int64, len(s.layers))
		for _, p := range t.Pieces {
			causes[p.Cause] += p.NS()
			if p.Layer >= 0 && int(p.Layer) < len(layers) {
				layers[p.Layer] += p.NS()
			}
		}
		for c, ns := range causes {
			s.causes[c] = append(s.causes[c], ns)
		}
		for l, ns := range layers {
			s.layers[l] = append(s.layers[l], ns)
		}
		x.addStages(t, s.stages)
	}
	return s
}

// addStages adds the time for which each stage handled messages of a token's steps.
func (x *index) addStages(t *Token, to map[string][]int64) {
	by := make(map[string]int64)
	for _, st := range x.stepsOf[t.Request] {
		for _, i := range st.handled {
			h := &x.handled[i]
			by[x.stage(h.Stage)] += h.EndedNS - h.BeganNS
		}
	}
	for _, name := range x.stages {
		to[name] = append(to[name], by[name])
	}
}

// change compares two lists of times pair by pair.
func change(name string, a, b []int64) Change {
	c := Change{Name: name, A: spread(a), B: spread(b), P: 1}
	n := min(len(a), len(b))
	if n == 0 {
		return c
	}
	differences := make([]int64, n)
	for i := range n {
		differences[i] = b[i] - a[i]
	}
	c.NS = median(differences)
	// Long runs are compared piece by piece: tokens that follow each other are alike, so those of a
	// piece make one pair.
	pieces := min(n, mostPairs)
	middles := make([]float64, pieces)
	for i := range middles {
		middles[i] = float64(median(differences[i*n/pieces : (i+1)*n/pieces]))
	}
	less, err := signedrank.Less(middles)
	if err != nil {
		return c
	}
	for i := range middles {
		middles[i] = -middles[i]
	}
	more, _ := signedrank.Less(middles)
	c.P = math.Min(1, 2*math.Min(less, more))
	c.Beyond = c.P <= significant
	return c
}

// spread returns the middle and the quarters of some times.
func spread(ns []int64) Spread {
	if len(ns) == 0 {
		return Spread{}
	}
	ns = slices.Sorted(slices.Values(ns))
	return Spread{median(ns), ns[(len(ns)-1)/4], ns[len(ns)-1-(len(ns)-1)/4]}
}

func settings(a, b map[string]string) (all []Setting) {
	names := make(map[string]bool)
	for k := range a {
		names[k] = true
	}
	for k := range b {
		names[k] = true
	}
	for k := range names {
		if a[k] != b[k] {
			all = append(all, Setting{k, a[k], b[k]})
		}
	}
	slices.SortFunc(all, func(a, b Setting) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// bothNames returns the names of both lists, those of a first.
func bothNames(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

func at(all [][]int64, i int) []int64 {
	if i < len(all) {
		return all[i]
	}
	return nil
}

func abs(n int64) int64 { return max(n, -n) }
