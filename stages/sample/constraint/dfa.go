package constraint

import (
	"errors"
	"slices"
)

// Bounds of one automaton over characters.
const (
	maxStates = 20000
	maxEdges  = 500_000
)

// errTooLarge reports an automaton of more than maxStates states or maxEdges edges.
var errTooLarge = errors.New("it needs too large an automaton")

// dfa is a deterministic automaton over characters. State 0 is the start. From every state a
// final one can be reached, unless the start is the only one and nothing matches.
type dfa struct {
	states []dfaState
	cost   int // edges that were looked at to make it
}

type dfaState struct {
	final bool
	edges []dfaEdge // sorted, disjoint
}

type dfaEdge struct {
	runeRange
	to int32
}

// anyString matches every text.
var anyString = &dfa{states: []dfaState{{final: true, edges: []dfaEdge{{anyRune[0], 0}, {anyRune[1], 0}}}}}

// noString matches none.
var noString = &dfa{states: make([]dfaState, 1)}

// target returns the state after r, -1 if there is none.
func (s *dfaState) target(r rune) int32 {
	for _, e := range s.edges {
		if e.lo <= r && r <= e.hi {
			return e.to
		}
	}
	return -1
}

// none reports whether d matches no text.
func (d *dfa) none() bool {
	return !d.states[0].final && len(d.states[0].edges) == 0
}

// explore builds the automaton whose states are keys: out returns whether a text may end in a
// state and the ranges of characters that lead to others, disjoint and in order.
func explore[K comparable](start K, out func(K) (final bool, to []exploreEdge[K], err error)) (*dfa, error) {
	d := &dfa{}
	known := map[K]int32{start: 0}
	queue := []K{start}
	edges := 0
	for i := 0; i < len(queue); i++ {
		final, to, err := out(queue[i])
		if err != nil {
			return nil, err
		}
		if edges += len(to); edges > maxEdges {
			return nil, errTooLarge
		}
		s := dfaState{final: final}
		for _, e := range to {
			id, ok := known[e.to]
			if !ok {
				if id = int32(len(queue)); id == maxStates {
					return nil, errTooLarge
				}
				known[e.to] = id
				queue = append(queue, e.to)
			}
			if n := len(s.edges); n > 0 && s.edges[n-1].to == id && s.edges[n-1].hi+1 == e.lo {
				s.edges[n-1].hi = e.hi
			} else {
				s.edges = append(s.edges, dfaEdge{e.runeRange, id})
			}
		}
		d.states = append(d.states, s)
	}
	trimmed := d.trim()
	trimmed.cost = 1 + edges
	return trimmed, nil
}

type exploreEdge[K comparable] struct {
	runeRange
	to K
}

// trim returns d without the states from which no final one can be reached.
func (d *dfa) trim() *dfa {
	before := make([][]int32, len(d.states))
	var work []int32
	alive := make([]bool, len(d.states))
	for i, s := range d.states {
		for _, e := range s.edges {
			before[e.to] = append(before[e.to], int32(i))
		}
		if s.final {
			alive[i] = true
			work = append(work, int32(i))
		}
	}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		for _, p := range before[i] {
			if !alive[p] {
				alive[p] = true
				work = append(work, p)
			}
		}
	}
	if !alive[0] {
		return &dfa{states: make([]dfaState, 1)}
	}
	number := make([]int32, len(d.states))
	n := int32(0)
	for i := range d.states {
		if number[i] = n; alive[i] {
			n++
		}
	}
	t := &dfa{states: make([]dfaState, 0, n)}
	for i, s := range d.states {
		if !alive[i] {
			continue
		}
		s.edges = slices.DeleteFunc(slices.Clone(s.edges), func(e dfaEdge) bool { return !alive[e.to] })
		for j := range s.edges {
			s.edges[j].to = number[s.edges[j].to]
		}
		t.states = append(t.states, s)
	}
	return t
}

// withoutEmpty returns d without the empty text: a start of its own, before all that d has.
func (d *dfa) withoutEmpty() *dfa {
	w := &dfa{states: make([]dfaState, 1, len(d.states)+1)}
	for _, s := range d.states {
		s.edges = slices.Clone(s.edges)
		for i := range s.edges {
			s.edges[i].to++
		}
		w.states = append(w.states, s)
	}
	w.states[0].edges = w.states[1].edges
	return w
}

// words returns the automaton of a list of texts.
func words(list []string) *dfa {
	d := &dfa{states: make([]dfaState, 1)}
	for _, w := range list {
		at := int32(0)
		for _, r := range w {
			to := d.states[at].target(r)
			if to < 0 {
				to = int32(len(d.states))
				d.states = append(d.states, dfaState{})
				d.states[at].insert(dfaEdge{runeRange{r, r}, to})
			}
			at = to
		}
		d.states[at].final = true
	}
	return d
}

func (s *dfaState) insert(e dfaEdge) {
	i, _ := slices.BinarySearchFunc(s.edges, e.lo, func(x dfaEdge, lo rune) int { return int(x.lo) - int(lo) })
	s.edges = slices.Insert(s.edges, i, e)
}
