package prefix

import (
	"fmt"
	"slices"
)

// Check counts everything anew and compares it with what the tree says. Tests ask it.
func (t *Tree[V]) Check() error {
	if t.root.parent != nil || t.root.to != 0 {
		return fmt.Errorf("prefix: the root has a parent, or tokens: %d", t.root.to)
	}
	_, err := t.root.check(nil)
	return err
}

// check returns how many holders end at a node, to which path leads, or below.
func (n *node[V]) check(path []int32) (refs int, err error) {
	var before *Holder[V]
	for h := n.first; h != nil; before, h = h, h.next {
		if h.at != n || h.prev != before || !slices.Equal(h.text, path) {
			return 0, fmt.Errorf("prefix: the holder of %v is listed at %v, or in disorder", h.text, path)
		}
		refs++
	}
	for i, b := range n.children {
		c := b.node
		switch {
		case c.parent != n || c.from != n.to || c.to <= c.from:
			return 0, fmt.Errorf("prefix: tokens %d to %d follow those up to %d at %v", c.from, c.to, n.to, path)
		case !c.has(c.by) || len(c.by.text) < c.to || !slices.Equal(c.by.text[:c.from], path):
			return 0, fmt.Errorf("prefix: the tokens after %v are taken from a holder of others", path)
		case b.token != c.tokens()[0] || i > 0 && b.token <= n.children[i-1].token:
			return 0, fmt.Errorf("prefix: the branches after %v are in disorder", path)
		}
		below, err := c.check(append(slices.Clip(path), c.tokens()...))
		if err != nil {
			return 0, err
		}
		refs += below
	}
	switch {
	case refs != n.refs:
		return 0, fmt.Errorf("prefix: %d holders are counted at %v, there are %d", n.refs, path, refs)
	case n.parent != nil && n.first == nil && len(n.children) < 2:
		return 0, fmt.Errorf("prefix: no text ends or branches at %v", path)
	}
	return refs, nil
}

// has reports whether a holder ends at a node or below.
func (n *node[V]) has(h *Holder[V]) bool {
	for at := h.at; at != nil; at = at.parent {
		if at == n {
			return true
		}
	}
	return false
}
