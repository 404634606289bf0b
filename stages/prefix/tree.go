package prefix

// Tree holds texts. The zero value is an empty one.
type Tree[V any] struct {
	root  node[V]
	spare []*node[V]
}

// Holder is a text in a tree.
type Holder[V any] struct {
	Value      V
	text       []int32
	at         *node[V]   // where it ends
	prev, next *Holder[V] // of those that end there
}

// Text returns the holder's text, which is read-only.
func (h *Holder[V]) Text() []int32 { return h.text }

// Begins reports whether a holder's text is the beginning of that of another one in the same tree,
// or all of it.
func (h *Holder[V]) Begins(other *Holder[V]) bool {
	n := other.at
	for n != nil && n.to > len(h.text) {
		n = n.parent
	}
	return n == h.at
}

// Len returns how many holders there are.
func (t *Tree[V]) Len() int { return t.root.refs }

// Insert adds a text. The tree keeps the slice, whose tokens must not change as long as it does.
func (t *Tree[V]) Insert(text []int32, value V) *Holder[V] {
	h := &Holder[V]{Value: value}
	t.root.list(h)
	t.root.refs++
	t.Extend(h, text)
	return h
}

// Extend makes a holder's text longer. text begins with the tokens that the holder had, and takes
// the place of its slice. If nobody else has a text that ends in the same place or goes on from
// there, this takes the same short time for any text, and compares nothing.
func (t *Tree[V]) Extend(h *Holder[V], text []int32) {
	n := h.at
	grows := len(text) > len(h.text)
	h.text = text
	switch {
	case !grows:
	case n.refs == 1 && n.parent != nil:
		n.to = len(text)
	default:
		n.unlist(h)
		t.below(n, h)
		t.merge(n)
	}
}

// Cut makes a holder's text shorter. It compares nothing.
func (t *Tree[V]) Cut(h *Holder[V], length int) {
	if length == len(h.text) {
		return
	}
	top := h.at
	for top.parent != nil && top.from >= length {
		top = top.parent
	}
	if length < top.to {
		top = t.split(top, length)
	}
	lowest := t.leave(h, top)
	h.text = h.text[:length:length]
	top.list(h)
	t.merge(lowest)
}

// Set gives a holder another text, which may have anything in common with the one before.
func (t *Tree[V]) Set(h *Holder[V], text []int32) {
	t.Cut(h, Common(h.text, text))
	t.Extend(h, text)
}

// Remove takes a holder out of the tree.
func (t *Tree[V]) Remove(h *Holder[V]) {
	lowest := t.leave(h, &t.root)
	t.root.refs--
	t.merge(lowest)
	h.text = nil
}

// below lists a holder, whose text passes through n, where that text ends, and counts it on the
// way there.
func (t *Tree[V]) below(n *node[V], h *Holder[V]) {
	for n.to < len(h.text) {
		rest := h.text[n.to:]
		i, found := n.child(rest[0])
		if !found {
			leaf := t.node()
			leaf.parent, leaf.by, leaf.from, leaf.to, leaf.refs = n, h, n.to, len(h.text), 1
			n.link(i, rest[0], leaf)
			n = leaf
			break
		}
		next := n.children[i].node
		if same := Common(next.tokens(), rest); next.from+same < next.to {
			next = t.split(next, next.from+same)
		}
		next.refs++
		n = next
	}
	n.list(h)
}

// leave takes a holder out of where it ends and of all nodes above that, up to top, which is left
// alone. It returns the lowest node of the way that is still there.
func (t *Tree[V]) leave(h *Holder[V], top *node[V]) (lowest *node[V]) {
	n := h.at
	n.unlist(h)
	for n != top {
		up := n.parent
		n.refs--
		switch {
		case n.refs == 0:
			up.unlink(n)
			t.free(n)
		case n.by == h:
			n.by = n.another()
			fallthrough
		default:
			if lowest == nil {
				lowest = n
			}
		}
		n = up
	}
	if lowest == nil {
		lowest = top
	}
	return lowest
}

// split divides a node in two, of which it returns the upper one, which ends at a position.
func (t *Tree[V]) split(n *node[V], at int) *node[V] {
	upper := t.node()
	upper.parent, upper.by, upper.from, upper.to, upper.refs = n.parent, n.by, n.from, at, n.refs
	i, _ := n.parent.child(n.tokens()[0])
	n.parent.children[i].node = upper
	upper.link(0, n.by.text[at], n)
	n.parent, n.from = upper, at
	return upper
}

// merge makes one node of n and its only child, if no text ends between the two.
func (t *Tree[V]) merge(n *node[V]) {
	if n.parent == nil || n.first != nil || len(n.children) != 1 {
		return
	}
	child := n.children[0].node
	i, _ := n.parent.child(n.tokens()[0])
	n.parent.children[i].node = child
	child.parent, child.from = n.parent, n.from
	t.free(n)
}

// Nodes come and go while sequences write the same text side by side. A few are kept, so that this
// allocates nothing.
const (
	spareNodes    = 64
	spareChildren = 8 // most room for children of one that is kept
)

func (t *Tree[V]) node() *node[V] {
	last := len(t.spare) - 1
	if last < 0 {
		return new(node[V])
	}
	n := t.spare[last]
	t.spare = t.spare[:last]
	return n
}

func (t *Tree[V]) free(n *node[V]) {
	children := n.children[:0]
	clear(n.children)
	if cap(children) > spareChildren {
		children = nil
	}
	*n = node[V]{children: children}
	if len(t.spare) < spareNodes {
		t.spare = append(t.spare, n)
	}
}

// Common returns how many tokens two texts have in common from their beginnings on.
func Common(a, b []int32) int {
	n := min(len(a), len(b))
	a, b = a[:n], b[:n]
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
