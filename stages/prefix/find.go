package prefix

import "iter"

// Sharing returns all holders whose texts begin as a text does, and how many tokens, at least one,
// they have in common with it: those with more before those with fewer. The tree must not change
// meanwhile.
func (t *Tree[V]) Sharing(text []int32) iter.Seq2[*Holder[V], int] {
	return func(yield func(*Holder[V], int) bool) {
		n, common := t.walk(text)
		var done *node[V]
		for n.parent != nil && n.each(done, common, yield) {
			done, n = n, n.parent
			common = n.to
		}
	}
}

// Beginnings returns the holders whose texts are as a whole the beginning of a text, and how many
// tokens, at least one, they have: longer ones first. The tree must not change meanwhile.
func (t *Tree[V]) Beginnings(text []int32) iter.Seq2[*Holder[V], int] {
	return func(yield func(*Holder[V], int) bool) {
		n, common := t.walk(text)
		if common < n.to {
			n = n.parent
		}
		for ; n.parent != nil; n = n.parent {
			for h := n.first; h != nil; h = h.next {
				if !yield(h, n.to) {
					return
				}
			}
		}
	}
}

// walk returns the lowest node that has something of a text, and how many tokens of the text there
// are down to it, the node's included.
func (t *Tree[V]) walk(text []int32) (n *node[V], common int) {
	n = &t.root
	for common == n.to && common < len(text) {
		i, found := n.child(text[common])
		if !found {
			break
		}
		n = n.children[i].node
		common += Common(n.tokens(), text[common:])
	}
	return n, common
}

// each yields the holders that end at a node or below, all but those below one child. It reports
// whether to go on.
func (n *node[V]) each(but *node[V], common int, yield func(*Holder[V], int) bool) bool {
	for h := n.first; h != nil; h = h.next {
		if !yield(h, common) {
			return false
		}
	}
	for _, b := range n.children {
		if b.node != but && !b.node.each(nil, common, yield) {
			return false
		}
	}
	return true
}
