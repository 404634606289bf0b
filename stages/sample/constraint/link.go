package constraint

import "slices"

// text marks a node to which each time of a repetition returns, if one of the times is any
// character of a set.
func (b *builder) text(at int32, times *expr) {
	alts := []*expr{times}
	if times.op == opAlt {
		alts = times.subs
	}
	var ranges []runeRange
	for _, e := range alts {
		if e.op == opRunes {
			ranges = append(ranges, e.set...)
		}
	}
	b.textSet(at, newSet(ranges...))
}

func (b *builder) textSet(at int32, set runeSet) {
	if len(set) == 0 {
		return
	}
	i := slices.IndexFunc(b.p.sets, func(s runeSet) bool { return slices.Equal(s, set) })
	if i < 0 {
		i = len(b.p.sets)
		b.p.sets = append(b.p.sets, set)
		b.p.first = append(b.p.first, set.firstBytes())
	}
	b.p.nodes[at].text = int32(i + 1)
}

// dfa adds what an automaton matches, as it is or between quotes.
func (b *builder) dfa(e *expr, from, to int32) {
	quoted := e.op == opQuoted
	at := make([]int32, len(e.dfa.states))
	for i := range at {
		at[i] = b.node()
	}
	if b.large {
		return
	}
	quote := byteRange{'"', '"'}
	if quoted {
		b.edge(from, quote, at[0])
	} else {
		b.eps(from, at[0])
	}
	for i, s := range e.dfa.states {
		switch {
		case s.final && quoted:
			b.edge(at[i], quote, to)
		case s.final:
			b.eps(at[i], to)
		}
		for target, set := range s.byTarget() {
			if quoted {
				b.escapes(set, at[i], at[target])
				set = set.and(jsonPlain)
			}
			b.runes(set, at[i], at[target])
			if int(target) == i {
				b.textSet(at[i], set)
			}
		}
	}
}

// byTarget returns the characters that lead to each state.
func (s *dfaState) byTarget() map[int32]runeSet {
	sets := map[int32]runeSet{}
	for _, e := range s.edges {
		sets[e.to] = append(sets[e.to], e.runeRange)
	}
	for to, set := range sets {
		sets[to] = newSet(set...)
	}
	return sets
}
