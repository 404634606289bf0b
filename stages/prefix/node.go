package prefix

import (
	"cmp"
	"slices"
)

// node is a run of tokens between two branches of the tree.
type node[V any] struct {
	parent   *node[V]   // nil: the root, which has no tokens
	by       *Holder[V] // one of those that count, in whose text the tokens are
	from, to int        // the tokens are by.text[from:to]
	refs     int        // holders whose texts end here or below
	first    *Holder[V] // of those whose texts end here
	children []branch[V]
}

// branch leads to a child.
type branch[V any] struct {
	token int32 // the child's first one, by which branches are in order
	node  *node[V]
}

func (n *node[V]) tokens() []int32 { return n.by.text[n.from:n.to] }

// child returns where the child is, or would be, that begins with a token.
func (n *node[V]) child(token int32) (at int, found bool) {
	return slices.BinarySearchFunc(n.children, token, func(b branch[V], token int32) int { return cmp.Compare(b.token, token) })
}

func (n *node[V]) link(at int, token int32, child *node[V]) {
	n.children = slices.Insert(n.children, at, branch[V]{token, child})
}

func (n *node[V]) unlink(child *node[V]) {
	i, _ := n.child(child.tokens()[0])
	n.children = slices.Delete(n.children, i, i+1)
}

// list adds a holder to those whose texts end here.
func (n *node[V]) list(h *Holder[V]) {
	h.at, h.prev, h.next = n, nil, n.first
	if n.first != nil {
		n.first.prev = h
	}
	n.first = h
}

func (n *node[V]) unlist(h *Holder[V]) {
	if h.prev != nil {
		h.prev.next = h.next
	} else {
		n.first = h.next
	}
	if h.next != nil {
		h.next.prev = h.prev
	}
	h.at, h.prev, h.next = nil, nil, nil
}

// another returns a holder that ends here or below, if one that did is gone and its traces below
// are, too.
func (n *node[V]) another() *Holder[V] {
	if n.first != nil {
		return n.first
	}
	return n.children[0].node.by
}
