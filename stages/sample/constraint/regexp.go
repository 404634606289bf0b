package constraint

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Regexp returns the grammar of the texts that an expression matches as a whole. The dialect is
// that of the standard library's regexp (RE2): no look-around, no reference back to a group. ^
// and $ may stand anywhere and mean what they mean there.
func Regexp(expression string) (*Grammar, error) {
	d, err := regexpDFA(expression)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %w", expression, err)
	}
	if d.none() {
		return nil, fmt.Errorf("regular expression %q matches no text", expression)
	}
	src := &source{}
	src.add("root", &expr{op: opDFA, dfa: d})
	return newGrammar(src)
}

// Choices returns the grammar of a list of texts. Each must be valid UTF-8.
func Choices(list []string) (*Grammar, error) {
	if len(list) == 0 {
		return nil, errors.New("the list of choices is empty; give at least one")
	}
	for i, c := range list {
		if !utf8.ValidString(c) {
			return nil, fmt.Errorf("choice %d, %q, is not valid UTF-8", i, c)
		}
	}
	src := &source{}
	src.add("root", &expr{op: opDFA, dfa: words(list)})
	return newGrammar(src)
}

// regexpDFA returns the automaton of the texts that an expression matches as a whole.
func regexpDFA(expression string) (*dfa, error) {
	re, err := syntax.Parse(expression, syntax.Perl)
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return nil, fmt.Errorf("%v: %q", e.Code, e.Expr)
	}
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, err
	}
	x := &subsets{prog: prog, ranges: make([]runeSet, len(prog.Inst))}
	for i := range prog.Inst {
		x.ranges[i] = instRunes(&prog.Inst[i])
		x.context(uint32(i))
	}
	return explore(x.key(-1, []uint32{uint32(prog.Start)}), x.out)
}

// instRunes returns the characters that an instruction matches.
func instRunes(in *syntax.Inst) runeSet {
	switch in.Op {
	case syntax.InstRuneAny:
		return anyRune
	case syntax.InstRuneAnyNotNL:
		return newSet(runeRange{'\n', '\n'}).not()
	case syntax.InstRune1:
		return newSet(runeRange{in.Rune[0], in.Rune[0]})
	case syntax.InstRune:
	default:
		return nil
	}
	if len(in.Rune) == 1 {
		ranges := []runeRange{{in.Rune[0], in.Rune[0]}}
		if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
			for r := unicode.SimpleFold(in.Rune[0]); r != in.Rune[0]; r = unicode.SimpleFold(r) {
				ranges = append(ranges, runeRange{r, r})
			}
		}
		return newSet(ranges...)
	}
	var ranges []runeRange
	for i := 0; i < len(in.Rune); i += 2 {
		ranges = append(ranges, runeRange{in.Rune[i], in.Rune[i+1]})
	}
	return newSet(ranges...)
}

// subsets makes an expression's program deterministic. A state is a set of instructions and the
// character before it, as far as ^, $ and \b can tell it from others.
type subsets struct {
	prog   *syntax.Prog
	ranges []runeSet // of each instruction
	begins bool      // an assertion tells where the text begins
	kinds  []runeSet // sets that other assertions tell apart; nil if there are none
	all    []uint32  // instructions from which every text matches
}

// context notes what an instruction has to know of what is around it.
func (x *subsets) context(i uint32) {
	in := &x.prog.Inst[i]
	switch in.Op {
	case syntax.InstEmptyWidth:
		x.begins = true
		if syntax.EmptyOp(in.Arg)&^(syntax.EmptyBeginText|syntax.EmptyEndText) != 0 {
			x.kinds = []runeSet{newSet(runeRange{'\n', '\n'}), ecmaWord}
		}
	case syntax.InstRuneAny: // the last instructions of .*
		loop := &x.prog.Inst[in.Out]
		if loop.Op == syntax.InstAlt && (loop.Out == i && x.prog.Inst[loop.Arg].Op == syntax.InstMatch || loop.Arg == i && x.prog.Inst[loop.Out].Op == syntax.InstMatch) {
			x.all = append(x.all, in.Out)
		}
	}
}

// subset is a state: the characters of a string are the character before, -1 for none, plus one,
// and then the instructions.
type subset string

func (x *subsets) key(before rune, insts []uint32) subset {
	for _, all := range x.all {
		if slices.Contains(insts, all) {
			before, insts = ' ', []uint32{all}
			break
		}
	}
	slices.Sort(insts)
	runes := []rune{x.kind(before) + 1}
	for _, i := range slices.Compact(insts) {
		// past the surrogates, which a string of characters cannot hold
		runes = append(runes, rune(i)+surrogateHigh+1)
	}
	return subset(runes)
}

// kind returns a character that assertions do not tell from r.
func (x *subsets) kind(r rune) rune {
	switch {
	case r < 0 && x.begins:
		return r
	case x.kinds == nil:
		return 0
	case r == '\n':
		return r
	case x.kinds[1].has(r):
		return 'a'
	}
	return ' '
}

func (x *subsets) out(k subset) (final bool, to []exploreEdge[subset], err error) {
	runes := []rune(string(k))
	before, insts := runes[0]-1, runes[1:]
	for i := range insts {
		insts[i] -= surrogateHigh + 1
	}
	_, final = x.closure(insts, before, -1)
	parts := []runeSet{anyRune}
	if x.kinds != nil {
		parts = []runeSet{x.kinds[0], x.kinds[1], newSet(slices.Concat(x.kinds[0], x.kinds[1])...).not()}
	}
	for _, part := range parts {
		found, _ := x.closure(insts, before, part[0].lo)
		to = append(to, x.edges(found, part)...)
	}
	slices.SortFunc(to, func(a, b exploreEdge[subset]) int { return int(a.lo) - int(b.lo) })
	return final, to, nil
}

// edges returns where the characters of part lead from instructions that match one.
func (x *subsets) edges(insts []uint32, part runeSet) (to []exploreEdge[subset]) {
	var cuts []rune
	sets := make([]runeSet, len(insts))
	for i, in := range insts {
		sets[i] = x.ranges[in].and(part)
		for _, r := range sets[i] {
			cuts = append(cuts, r.lo, r.hi+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	for c := 0; c+1 < len(cuts); c++ {
		var next []uint32
		for i, in := range insts {
			if sets[i].has(cuts[c]) {
				next = append(next, x.prog.Inst[in].Out)
			}
		}
		if len(next) > 0 {
			to = append(to, exploreEdge[subset]{runeRange{cuts[c], cuts[c+1] - 1}, x.key(cuts[c], next)})
		}
	}
	return to
}

// closure returns the instructions that match a character, reached from some by none, where
// before and after are the characters around, -1 for none. It tells whether the text may end
// there.
func (x *subsets) closure(from []rune, before, after rune) (found []uint32, match bool) {
	holds := syntax.EmptyOpContext(before, after)
	seen := map[uint32]bool{}
	var work []uint32
	for _, i := range from {
		work = append(work, uint32(i))
	}
	for len(work) > 0 {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[at] {
			continue
		}
		seen[at] = true
		switch in := &x.prog.Inst[at]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			work = append(work, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			work = append(work, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^holds == 0 {
				work = append(work, in.Out)
			}
		case syntax.InstMatch:
			match = true
		case syntax.InstFail:
		default:
			found = append(found, at)
		}
	}
	return found, match
}
