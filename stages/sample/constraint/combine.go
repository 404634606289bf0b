package constraint

import (
	"encoding/binary"
	"slices"
)

// matches reports whether d matches a text.
func (d *dfa) matches(text string) bool {
	at := int32(0)
	for _, r := range text {
		if at = d.states[at].target(r); at < 0 {
			return false
		}
	}
	return d.states[at].final
}

func (d *dfa) and(o *dfa) (*dfa, error) {
	switch {
	case d == o || o == anyString:
		return d, nil
	case d == anyString:
		return o, nil
	}
	return combine(d, o, func(a, b bool) bool { return a && b })
}

func (d *dfa) or(o *dfa) (*dfa, error) {
	switch {
	case d == o || o.none() || d == anyString:
		return d, nil
	case d.none() || o == anyString:
		return o, nil
	}
	return combine(d, o, func(a, b bool) bool { return a || b })
}

func (d *dfa) minus(o *dfa) (*dfa, error) {
	if d == o || o == anyString {
		return noString, nil
	}
	return combine(d, o, func(a, b bool) bool { return a && !b })
}

// statePair is a state of each of two automata, dead where nothing matches any more.
type statePair struct{ a, b int32 }

const dead = -1

// combine returns the automaton of the texts that keep keeps, given whether a and b match them.
// It must not keep what neither matches.
func combine(a, b *dfa, keep func(a, b bool) bool) (*dfa, error) {
	d, err := explore(statePair{}, func(p statePair) (bool, []exploreEdge[statePair], error) {
		var to []exploreEdge[statePair]
		for e := range bothEdges(a.edgesOf(p.a), b.edgesOf(p.b)) {
			if e.to.a == dead && !keep(false, true) || e.to.b == dead && !keep(true, false) {
				continue
			}
			to = append(to, e)
		}
		return keep(a.finalAt(p.a), b.finalAt(p.b)), to, nil
	})
	if err != nil {
		return nil, err
	}
	return d.minimal(), nil
}

func (d *dfa) edgesOf(at int32) []dfaEdge {
	if at == dead {
		return nil
	}
	return d.states[at].edges
}

func (d *dfa) finalAt(at int32) bool { return at != dead && d.states[at].final }

// bothEdges yields the characters of edges of one state or the other, in order, with where both
// lead.
func bothEdges(a, b []dfaEdge) func(func(exploreEdge[statePair]) bool) {
	return func(yield func(exploreEdge[statePair]) bool) {
		for lo := rune(0); len(a) > 0 || len(b) > 0; {
			e := exploreEdge[statePair]{runeRange{lo, anyRune[1].hi}, statePair{dead, dead}}
			a = firstEdge(a, &e.runeRange, &e.to.a)
			b = firstEdge(b, &e.runeRange, &e.to.b)
			if e.to != (statePair{dead, dead}) && !yield(e) {
				return
			}
			lo = e.hi + 1
			for len(a) > 0 && a[0].hi < lo {
				a = a[1:]
			}
			for len(b) > 0 && b[0].hi < lo {
				b = b[1:]
			}
		}
	}
}

// firstEdge shortens a range of characters to those that lead to one state, and tells which.
func firstEdge(edges []dfaEdge, r *runeRange, to *int32) []dfaEdge {
	switch {
	case len(edges) == 0:
	case edges[0].lo > r.lo:
		r.hi = min(r.hi, edges[0].lo-1)
	default:
		r.hi, *to = min(r.hi, edges[0].hi), edges[0].to
	}
	return edges
}

// maxRefined bounds the states that minimal looks at, again each time that it looks.
const maxRefined = 300_000

// minimal returns the smallest automaton that matches the same; a large one stays as it is.
func (d *dfa) minimal() *dfa {
	part := make([]int32, len(d.states)) // of each state: those of one part match the same
	for i, s := range d.states {
		if s.final != d.states[0].final {
			part[i] = 1
		}
	}
	parts := 0
	for work := 0; work < maxRefined; work += len(d.states) {
		next, n := d.refine(part)
		if n == parts {
			return d.quotient(part, parts, work)
		}
		part, parts = next, n
	}
	large := *d
	large.cost += maxRefined
	return &large
}

// refine splits parts by where their states lead. Part 0 has state 0.
func (d *dfa) refine(part []int32) (next []int32, n int) {
	known := map[string]int32{}
	next = make([]int32, len(part))
	var key []byte
	for i, s := range d.states {
		key = binary.LittleEndian.AppendUint32(key[:0], uint32(part[i]))
		for _, e := range merged(s.edges, part) {
			for _, n := range []int32{e.lo, e.hi, e.to} {
				key = binary.LittleEndian.AppendUint32(key, uint32(n))
			}
		}
		id, ok := known[string(key)]
		if !ok {
			id = int32(len(known))
			known[string(key)] = id
		}
		next[i] = id
	}
	return next, len(known)
}

// merged returns edges to the parts of states, those next to each other as one.
func merged(edges []dfaEdge, part []int32) []dfaEdge {
	var list []dfaEdge
	for _, e := range edges {
		e.to = part[e.to]
		if n := len(list); n > 0 && list[n-1].to == e.to && list[n-1].hi+1 == e.lo {
			list[n-1].hi = e.hi
		} else {
			list = append(list, e)
		}
	}
	return list
}

// quotient returns the automaton whose states are parts of d's.
func (d *dfa) quotient(part []int32, n, work int) *dfa {
	q := &dfa{states: make([]dfaState, n), cost: d.cost + work}
	for i := len(d.states) - 1; i >= 0; i-- {
		q.states[part[i]] = dfaState{final: d.states[i].final, edges: merged(d.states[i].edges, part)}
	}
	if n == 1 && q.states[0].final && slices.Equal(q.states[0].edges, anyString.states[0].edges) {
		return anyString
	}
	return q
}

// lengths returns the automaton of the texts of least to most characters that d matches.
func (d *dfa) lengths(least, most int) (*dfa, error) {
	if least == 0 && most == unbounded {
		return d, nil
	}
	counted, err := explore(statePair{}, func(p statePair) (bool, []exploreEdge[statePair], error) {
		s, n := &d.states[p.a], int(p.b)
		if n == most {
			return s.final && n >= least, nil, nil
		}
		next := n + 1
		if most == unbounded {
			next = min(next, least)
		}
		var to []exploreEdge[statePair]
		for _, e := range s.edges {
			to = append(to, exploreEdge[statePair]{e.runeRange, statePair{e.to, int32(next)}})
		}
		return s.final && n >= least, to, nil
	})
	if err != nil {
		return nil, err
	}
	return counted, nil
}

// cyclic reports whether d matches texts of any length.
func (d *dfa) cyclic() bool {
	const open, done = 1, 2
	state := make([]uint8, len(d.states))
	var visit func(at int32) bool
	visit = func(at int32) bool {
		state[at] = open
		for _, e := range d.states[at].edges {
			if state[e.to] == open || state[e.to] == 0 && visit(e.to) {
				return true
			}
		}
		state[at] = done
		return false
	}
	return visit(0)
}
