package analyse

import "github.com/moeflux/moeflux-actor/tracing/record"

// Lately is some tokens of a recording, with what was done for each.
type Lately struct {
	Tokens     []Token
	Waterfalls []*Waterfall // of Tokens
}

// LatelyOf explains the wanted requests of a recording, which needs to hold little more than what
// happened during them: a window into a longer one.
func LatelyOf(rec *record.Recording, wanted func(*record.Request) bool) *Lately {
	x := newIndex(rec)
	l := &Lately{Tokens: x.tokensOf(wanted)}
	for i := range l.Tokens {
		l.Waterfalls = append(l.Waterfalls, x.waterfall(&l.Tokens[i]))
	}
	return l
}

// Causes returns all causes, by their number.
func Causes() []Cause {
	all := make([]Cause, NumCauses)
	for i := range all {
		all[i] = Cause(i)
	}
	return all
}

// Works returns all works, by their number.
func Works() []Work {
	all := make([]Work, len(works))
	for i := range all {
		all[i] = Work(i)
	}
	return all
}

func (w Work) String() string { return works[w] }
