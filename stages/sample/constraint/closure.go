package constraint

// closure finds all items that follow from some without a further byte. It keeps memory between
// uses.
type closure struct {
	g       *generation
	seen    map[item]struct{}
	todo    []item
	items   []item // found: those that a byte or a text may follow
	ends    bool
	pending []called
}

// called is a rule that was called at this place, and where to return from it. A rule is called
// once, for all callers together: so they share what follows.
type called struct {
	rule int32
	rets []ret
}

// of returns the items that follow from seeds, in memory that the next call uses again, and
// whether the text may end.
func (x *closure) of(g *generation, seeds []item) ([]item, bool) {
	if x.seen == nil {
		x.seen = map[item]struct{}{}
	}
	clear(x.seen)
	x.g, x.todo, x.items, x.ends, x.pending = g, x.todo[:0], x.items[:0], false, x.pending[:0]
	for _, s := range seeds {
		x.add(s)
	}
	for {
		for len(x.todo) > 0 {
			it := x.todo[len(x.todo)-1]
			x.todo = x.todo[:len(x.todo)-1]
			x.expand(it)
		}
		c, ok := x.first()
		if !ok {
			return x.items, x.ends
		}
		x.add(item{node: g.m.p.rules[c.rule].start, frame: g.frame(c.rets)})
	}
}

// add adds an item, unless it needs a deeper stack than there may be.
func (x *closure) add(it item) {
	if it.frame != nil && it.frame.depth+x.g.m.p.nodes[it.node].need > maxDepth {
		return
	}
	if _, ok := x.seen[it]; !ok {
		x.seen[it] = struct{}{}
		x.todo = append(x.todo, it)
	}
}

func (x *closure) expand(it item) {
	if it.node == endNode {
		x.ends = true
		return
	}
	p := x.g.m.p
	n := &p.nodes[it.node]
	if len(n.edges) > 0 || n.text != 0 {
		x.items = append(x.items, it)
	}
	for _, to := range n.eps {
		x.add(item{to, it.count, it.frame})
	}
	if n.final {
		x.finish(it.frame)
	}
	if l := n.loop; l != nil {
		if it.count >= l.min {
			x.finish(it.frame)
		}
		if it.count < l.max {
			x.add(item{l.body, it.count, it.frame})
		}
	}
	if n.again != 0 {
		count := it.count + 1
		if l := p.nodes[n.again].loop; l.max == unbounded {
			count = min(count, l.min)
		}
		x.add(item{n.again, count, it.frame})
	}
	for _, c := range n.calls {
		x.call(c, it)
	}
}

// finish goes on where the rule of a frame returns to.
func (x *closure) finish(f *frame) {
	for _, r := range f.rets {
		x.add(item{r.node, r.count, r.parent})
	}
}

// call notes a call. Where the rule matches the empty text, what follows the call begins here,
// too: the rule itself is entered only when all its callers are known.
func (x *closure) call(c call, it item) {
	p := x.g.m.p
	if p.rules[c.rule].null {
		x.add(item{c.ret, it.count, it.frame})
	}
	rets := []ret{{c.ret, it.count, it.frame}}
	if p.tail(c.ret) {
		rets = it.frame.rets
	}
	for i := range x.pending {
		if x.pending[i].rule == c.rule {
			x.pending[i].rets = append(x.pending[i].rets, rets...)
			return
		}
	}
	x.pending = append(x.pending, called{c.rule, append([]ret(nil), rets...)})
}

// first takes the pending call that no other can add callers to.
func (x *closure) first() (called, bool) {
	if len(x.pending) == 0 {
		return called{}, false
	}
	best := 0
	rules := x.g.m.p.rules
	for i, c := range x.pending {
		if rules[c.rule].order < rules[x.pending[best].rule].order {
			best = i
		}
	}
	c := x.pending[best]
	x.pending[best] = x.pending[len(x.pending)-1]
	x.pending = x.pending[:len(x.pending)-1]
	return c, true
}
