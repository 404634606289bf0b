package constraint

import (
	"fmt"
	"slices"
)

// LeftRecursionError reports a rule that begins with itself.
type LeftRecursionError struct {
	Rule string
}

func (e *LeftRecursionError) Error() string {
	return fmt.Sprintf("rule %q begins with itself; write the repetition with * or +, or at the end of the rule", e.Rule)
}

// setOrder numbers the rules so that each comes before those that can begin where it begins.
// There is no such order if a rule begins with itself.
func (b *builder) setOrder() error {
	const unseen, open, done = 0, 1, 2
	state := make([]uint8, len(b.p.rules))
	next := int32(len(b.p.rules))
	var visit func(r int32) error
	visit = func(r int32) error {
		state[r] = open
		for _, called := range b.begins(r) {
			switch state[called] {
			case open:
				return &LeftRecursionError{Rule: b.bodies[called].name}
			case unseen:
				if err := visit(called); err != nil {
					return err
				}
			}
		}
		state[r] = done
		next--
		b.p.rules[r].order = next
		return nil
	}
	for r := range b.p.rules {
		if state[r] == unseen {
			if err := visit(int32(r)); err != nil {
				return err
			}
		}
	}
	return nil
}

// begins returns the rules that are called where a rule begins.
func (b *builder) begins(r int32) []int32 {
	var called []int32
	seen := map[int32]bool{}
	work := []int32{b.p.rules[r].start}
	for len(work) > 0 {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[at] {
			continue
		}
		seen[at] = true
		n := &b.p.nodes[at]
		work = append(work, n.eps...)
		if n.loop != nil {
			work = append(work, n.loop.body)
		}
		if n.again != 0 {
			work = append(work, n.again)
		}
		for _, c := range n.calls {
			called = append(called, c.rule)
			if b.null[c.rule] {
				work = append(work, c.ret)
			}
		}
	}
	return called
}

// tail reports whether nothing follows a node in its rule: a call that returns there needs no
// frame of its own.
func (p *program) tail(at int32) bool {
	n := &p.nodes[at]
	return n.final && len(n.edges) == 0 && len(n.eps) == 0 && len(n.calls) == 0
}

// setNeed finds how many frames each node needs to come to the end of its rule, and takes away
// what leads to nodes that never do.
func (p *program) setNeed() {
	before := make([][]int32, len(p.nodes)) // the nodes whose need may depend on this one's
	for i := range p.nodes {
		n := &p.nodes[i]
		n.need = tooDeep
		from := func(to int32) { before[to] = append(before[to], int32(i)) }
		for _, e := range n.edges {
			from(e.to)
		}
		for _, to := range n.eps {
			from(to)
		}
		if n.loop != nil {
			from(n.loop.body)
		}
		for _, c := range n.calls {
			from(c.ret)
			from(p.rules[c.rule].start)
		}
	}
	var work []int32
	for i := range p.nodes {
		n := &p.nodes[i]
		// From the end of a repetition's body nothing more is needed than what there was room for
		// when the body began: it stands in the same frame.
		if n.final || i == endNode || n.again != 0 || n.loop != nil && n.loop.min == 0 {
			n.need = 0
			work = append(work, before[i]...)
		}
	}
	for len(work) > 0 {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		if need := p.needOf(at); need < p.nodes[at].need {
			p.nodes[at].need = need
			work = append(work, before[at]...)
		}
	}
	for i := range p.nodes {
		p.prune(&p.nodes[i])
	}
}

func (p *program) needOf(at int32) int32 {
	n := &p.nodes[at]
	need := n.need
	for _, e := range n.edges {
		need = min(need, p.nodes[e.to].need)
	}
	for _, to := range n.eps {
		need = min(need, p.nodes[to].need)
	}
	if n.loop != nil {
		need = min(need, p.nodes[n.loop.body].need)
	}
	for _, c := range n.calls {
		need = min(need, max(p.nodes[p.rules[c.rule].start].need+1, p.nodes[c.ret].need))
	}
	return need
}

// prune takes away what leads to nodes from which the rule's end cannot be reached.
func (p *program) prune(n *node) {
	dead := func(at int32) bool { return p.nodes[at].need >= tooDeep }
	n.edges = slices.DeleteFunc(n.edges, func(e edge) bool { return dead(e.to) })
	n.eps = slices.DeleteFunc(n.eps, dead)
	n.calls = slices.DeleteFunc(n.calls, func(c call) bool { return dead(c.ret) || dead(p.rules[c.rule].start) })
	if n.loop != nil && dead(n.loop.body) {
		n.loop.max = 0
		n.text = 0
	}
}

// setClasses finds which bytes no edge tells apart.
func (p *program) setClasses() {
	var begins [257]bool
	for _, n := range p.nodes {
		for _, e := range n.edges {
			begins[e.lo], begins[int(e.hi)+1] = true, true
		}
	}
	for b := range 256 {
		if b == 0 || begins[b] {
			p.example = append(p.example, byte(b))
		}
		p.class[b] = uint8(len(p.example) - 1)
	}
}
