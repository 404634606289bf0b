package constraint

import (
	"slices"
	"unicode/utf8"
)

// textTokens splits a vocabulary by a set of characters. Where any text of the set may follow,
// the tokens that are such a text need not be tried one by one: and they are most of a
// vocabulary, in a string or in free text.
type textTokens struct {
	set     runeSet
	longest int        // characters of the longest token of the set
	upTo    [][]uint64 // upTo[n]: the mask of the tokens of at most n characters, all of the set
	rest    *trie      // the other tokens; nil if there are too many for the split to pay
	// Of the vocabulary's trie: the tokens of the set in its order, and how many come before each
	// node.
	inside []int32
	before []int32
}

// under returns the tokens of the set in a subtree.
func (t *textTokens) under(all *trie, node int32) []int32 {
	return t.inside[t.before[node]:t.before[all.end[node]]]
}

// only reports whether a subtree has no other tokens.
func (t *textTokens) only(all *trie, node int32) bool {
	end := all.end[node]
	return t.before[end]-t.before[node] == all.first[end]-all.first[node]
}

// splits finds the splits of places, one of which mostly comes again and again.
type splits struct {
	v    *Vocabulary
	at   *place
	last *textTokens
}

// after returns the split of a place after which any text of its set may come, nil for none.
func (s *splits) after(at *place) *textTokens {
	if at != s.at {
		s.at, s.last = at, at.free(s.v)
	}
	return s.last
}

// maxTexts bounds the sets of characters that a vocabulary is split by at a time: each takes some
// megabytes.
const maxTexts = 8

// text returns the split by a set, nil if it does not pay.
func (v *Vocabulary) text(set runeSet) *textTokens {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := slices.IndexFunc(v.texts, func(t *textTokens) bool { return slices.Equal(t.set, set) })
	if i < 0 {
		if len(v.texts) == maxTexts {
			v.texts = slices.Delete(v.texts, 0, 1)
		}
		v.texts = append(v.texts, v.newText(set))
		i = len(v.texts) - 1
	}
	if v.texts[i].rest == nil {
		return nil
	}
	return v.texts[i]
}

func (v *Vocabulary) newText(set runeSet) *textTokens {
	t := &textTokens{set: set}
	var ascii [utf8.RuneSelf]bool
	for r := range ascii {
		ascii[r] = set.has(rune(r))
	}
	byLength := make([][]int32, 1)
	var rest []int32
	inside := 0
	for id, token := range v.tokens {
		if len(token) == 0 || len(token) > longestToken {
			continue
		}
		n, ok := set.covers(token, &ascii)
		if !ok {
			rest = append(rest, int32(id))
			continue
		}
		inside++
		for len(byLength) <= n {
			byLength = append(byLength, nil)
		}
		byLength[n] = append(byLength[n], int32(id))
	}
	if inside < len(rest) {
		return t
	}
	mask := make([]uint64, v.words())
	for _, ids := range byLength {
		if len(ids) > 0 {
			mask = slices.Clone(mask)
			for _, id := range ids {
				mask[id/64] |= 1 << (id % 64)
			}
		}
		t.upTo = append(t.upTo, mask)
	}
	t.longest = len(byLength) - 1
	t.rest = newTrie(v.tokens, rest)
	t.order(v, mask)
	return t
}

// order notes the tokens of the set, of which mask is, in the order of the vocabulary's trie.
func (t *textTokens) order(v *Vocabulary, mask []uint64) {
	t.before = make([]int32, len(v.trie.bytes)+1)
	for i := range v.trie.bytes {
		t.before[i] = int32(len(t.inside))
		for _, id := range v.trie.ids[v.trie.first[i]:v.trie.first[i+1]] {
			if mask[id/64]>>(id%64)&1 == 1 {
				t.inside = append(t.inside, id)
			}
		}
	}
	t.before[len(v.trie.bytes)] = int32(len(t.inside))
}

// covers reports whether a token is whole characters of the set, and how many. Which bytes below
// utf8.RuneSelf are is in ascii.
func (s runeSet) covers(token []byte, ascii *[utf8.RuneSelf]bool) (n int, ok bool) {
	for len(token) > 0 {
		if token[0] < utf8.RuneSelf {
			if !ascii[token[0]] {
				return 0, false
			}
			token = token[1:]
			n++
			continue
		}
		r, size := utf8.DecodeRune(token)
		if r == utf8.RuneError && size == 1 || !s.has(r) {
			return 0, false
		}
		token = token[size:]
		n++
	}
	return n, true
}
