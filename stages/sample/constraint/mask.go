package constraint

import "slices"

// maskOf is the tokens of a vocabulary that may follow a place. A place has a list of them:
// mostly there is one vocabulary.
type maskOf struct {
	v     *Vocabulary
	words []uint64
	next  *maskOf
}

// mask returns the mask of the tokens that may follow. It is shared and must not be changed.
func (c *place) mask(v *Vocabulary) []uint64 {
	if c.gen == nil {
		return make([]uint64, v.words())
	}
	list := c.masks.Load()
	for m := list; m != nil; m = m.next {
		if m.v == v {
			return m.words
		}
	}
	m := &maskOf{v: v, words: c.newMask(v), next: list}
	// Who comes second has done the work in vain; both have the same result.
	if c.masks.CompareAndSwap(list, m) {
		c.gen.bytes.Add(int64(8*len(m.words) + 64))
	}
	return m.words
}

func (c *place) newMask(v *Vocabulary) []uint64 {
	var words []uint64
	if t, length := c.text(v); t != nil {
		words = slices.Clone(t.upTo[min(length, t.longest)])
		t.rest.mark(c, words, nil)
	} else {
		words = make([]uint64, v.words())
		v.trie.mark(c, words, &splits{v: v})
	}
	if c.ends {
		for _, id := range v.ends {
			words[id/64] |= 1 << (id % 64)
		}
	}
	return words
}

// text returns a split of the vocabulary such that exactly the tokens of at most length
// characters of its set may follow here, and of the other tokens those that the automaton allows;
// nil if there is none.
func (c *place) text(v *Vocabulary) (split *textTokens, length int) {
	p := c.gen.m.p
	for _, it := range c.items {
		n := &p.nodes[it.node]
		if n.text == 0 {
			continue
		}
		length := unbounded
		if n.loop != nil && n.loop.max != unbounded {
			length = int(n.loop.max - it.count)
		}
		t := v.text(p.sets[n.text-1])
		// A longer token of the set might be another item's.
		if t != nil && (length >= t.longest || c.alone(it)) {
			return t, length
		}
	}
	return nil, 0
}

// free returns the split of a set of which any text, however long, may follow here; nil if there is
// none.
func (c *place) free(v *Vocabulary) *textTokens {
	p := c.gen.m.p
	for _, it := range c.items {
		n := &p.nodes[it.node]
		if n.text != 0 && (n.loop == nil || n.loop.max == unbounded) {
			return v.text(p.sets[n.text-1])
		}
	}
	return nil
}

// alone reports whether no item but that of a text begins with a character of the text's set,
// here or later in its repetition.
func (c *place) alone(it item) bool {
	p := c.gen.m.p
	l := p.nodes[it.node].loop
	if l == nil || it.count < l.min && !l.fenced { // more may follow once it may end
		return false
	}
	first := &p.first[p.nodes[it.node].text-1]
	for _, other := range c.items {
		if other.frame == it.frame && other.count == it.count && (other.node == it.node || other.node == l.body) {
			continue
		}
		for _, e := range p.nodes[other.node].edges {
			for b := int(e.lo); b <= int(e.hi); b++ {
				if first[b] {
					return false
				}
			}
		}
	}
	return true
}

// firstBytes returns with which bytes the characters of the set begin.
func (s runeSet) firstBytes() (first [256]bool) {
	for _, r := range s {
		r.sequences(func(seq []byteRange) {
			for b := int(seq[0].lo); b <= int(seq[0].hi); b++ {
				first[b] = true
			}
		})
	}
	return first
}
