package constraint

import "fmt"

// A program is a grammar as the automaton runs it: a graph of nodes for each rule, over bytes.
type program struct {
	nodes []node
	rules []rule
	sets  []runeSet   // of node.text
	first [][256]bool // with which bytes the characters of each set begin

	class   [256]uint8 // bytes that no edge tells apart are of one class
	example []byte     // a byte of each class
}

type rule struct {
	start int32
	order int32 // callers at the same place of a text come before the called
	null  bool  // it matches the empty text
}

// node is a place in a rule.
type node struct {
	edges []edge  // by a byte
	eps   []int32 // by nothing
	calls []call  // by what a rule matches
	final bool    // the rule may end here

	// A node with a loop is where the rule of a counted repetition is between two times.
	loop *loop
	// again is the loop node to which the body's end returns, having been matched once more; 0
	// for none.
	again int32

	// text, if not 0, is one more than the index in sets of characters that lead back here, as
	// often as left says.
	text int32
	// need is how many frames the shortest way to the rule's end takes; tooDeep if there is none.
	need int32
}

type loop struct {
	min, max int32
	body     int32
	fenced   bool // see expr
}

type edge struct {
	byteRange
	to int32
}

type call struct{ rule, ret int32 }

// endNode is where the stack's bottom returns to: the whole text has been matched. It is node 0.
const endNode = 0

const (
	maxNodes = 2_000_000
	maxDepth = 256 // frames
	tooDeep  = maxDepth + 1
)

// builder makes a program.
type builder struct {
	p      *program
	bodies []body // of the program's rules
	null   []bool // which of them match the empty text
	tails  map[tail]int32
	loops  map[*expr]int // counted repetitions to their rules
	strips map[int]int   // rules to those that match the same, but for the empty text
	escape map[escape]int32
	most   int // nodes
	large  bool
}

type body struct {
	name string
	e    *expr
	loop bool // e is a repetition to be counted
}

// tail is the end of the UTF-8 of a character: many ranges share theirs.
type tail struct {
	byteRange
	to int32
}

// tooManyNodesError reports a grammar that is too large.
type tooManyNodesError struct{ most int }

func (e *tooManyNodesError) Error() string {
	return fmt.Sprintf("the grammar needs more than %d nodes", e.most)
}

var errNoText = fmt.Errorf("the grammar matches no text, or none within %d nested rules", maxDepth)

// compile makes the program of a source, of so many nodes at most. The error is about the grammar
// as a whole: it is too large, matches nothing, or a rule begins with itself.
func compile(src *source, most int) (*program, error) {
	b := &builder{
		p: &program{nodes: make([]node, 1)}, null: src.nullables(),
		tails: map[tail]int32{}, loops: map[*expr]int{}, strips: map[int]int{}, escape: map[escape]int32{}, most: most,
	}
	for i, e := range src.rules {
		b.bodies = append(b.bodies, body{name: src.names[i], e: e})
	}
	for i := 0; i < len(b.bodies) && !b.large; i++ { // building may add more
		b.rule(b.bodies[i])
	}
	if b.large {
		return nil, &tooManyNodesError{most: most}
	}
	for i := range b.p.rules {
		b.p.rules[i].null = b.null[i]
	}
	if err := b.setOrder(); err != nil {
		return nil, err
	}
	b.p.setNeed()
	if b.p.nodes[b.p.rules[0].start].need >= tooDeep {
		return nil, errNoText
	}
	b.p.setClasses()
	return b.p, nil
}

// add adds a rule to the program and returns its number.
func (b *builder) add(x body, null bool) int {
	b.bodies, b.null = append(b.bodies, x), append(b.null, null)
	return len(b.bodies) - 1
}

func (b *builder) node() int32 {
	if len(b.p.nodes) >= b.most {
		b.large = true
		return endNode
	}
	b.p.nodes = append(b.p.nodes, node{})
	return int32(len(b.p.nodes) - 1)
}

// rule builds the nodes of the next rule.
func (b *builder) rule(x body) {
	start := b.node()
	b.p.rules = append(b.p.rules, rule{start: start})
	if !x.loop {
		end := b.node()
		b.p.nodes[end].final = true
		b.link(x.e, start, end)
		return
	}
	first, last := b.node(), b.node()
	l := &loop{min: int32(min(x.e.min, unbounded)), max: int32(min(x.e.max, unbounded)), body: first, fenced: x.e.fenced}
	times := x.e.subs[0]
	if times.nullable(b.null) { // only times that are not empty count, and so none need be
		times, l.min = b.strip(times), 0
	}
	b.p.nodes[start].loop = l
	b.p.nodes[last].again = start
	b.text(start, times)
	b.link(times, first, last)
}

// link adds what leads from one node to another by e.
func (b *builder) link(e *expr, from, to int32) {
	if b.large {
		return
	}
	switch e.op {
	case opEmpty:
		b.eps(from, to)
	case opBytes:
		for i := range len(e.text) - 1 {
			next := b.node()
			b.edge(from, byteRange{e.text[i], e.text[i]}, next)
			from = next
		}
		last := e.text[len(e.text)-1]
		b.edge(from, byteRange{last, last}, to)
	case opRunes:
		b.runes(e.set, from, to)
	case opCat:
		for i, s := range e.subs {
			next := to
			if i < len(e.subs)-1 {
				next = b.node()
			}
			b.link(s, from, next)
			from = next
		}
		if len(e.subs) == 0 {
			b.eps(from, to)
		}
	case opAlt:
		for _, s := range e.subs {
			b.link(s, from, to)
		}
	case opRepeat:
		b.repeat(e, from, to)
	case opRule:
		b.call(from, e.rule, to)
	case opDFA, opQuoted:
		b.dfa(e, from, to)
	case opMembers:
		b.members(e.members, from, to)
	}
}

func (b *builder) eps(from, to int32) { b.p.nodes[from].eps = append(b.p.nodes[from].eps, to) }

func (b *builder) edge(from int32, r byteRange, to int32) {
	b.p.nodes[from].edges = append(b.p.nodes[from].edges, edge{r, to})
}

func (b *builder) call(from int32, rule int, to int32) {
	b.p.nodes[from].calls = append(b.p.nodes[from].calls, call{int32(rule), to})
}

// runes adds edges for the UTF-8 of a set of characters.
func (b *builder) runes(set runeSet, from, to int32) {
	for _, r := range set {
		r.sequences(func(seq []byteRange) {
			at := to
			for i := len(seq) - 1; i > 0; i-- {
				key := tail{seq[i], at}
				next, ok := b.tails[key]
				if !ok {
					next = b.node()
					b.edge(next, seq[i], at)
					b.tails[key] = next
				}
				at = next
			}
			b.edge(from, seq[0], at)
		})
	}
}

// repeat adds a repetition: in place if nothing has to be counted, else by a rule of its own,
// whose frame holds the count.
func (b *builder) repeat(e *expr, from, to int32) {
	times := e.subs[0]
	switch {
	case e.max == 1: // min is 0
		b.link(times, from, to)
		b.eps(from, to)
	case e.min == 0 && e.max == unbounded:
		at := b.node()
		b.eps(from, at)
		b.link(times, at, at)
		b.eps(at, to)
		b.text(at, times)
	default:
		number, ok := b.loops[e]
		if !ok {
			number = b.add(body{name: "a repetition", e: e, loop: true}, e.nullable(b.null))
			b.loops[e] = number
		}
		b.call(from, number, to)
	}
}
