package constraint

import (
	"bytes"
	"slices"
	"sync"
)

// Vocabulary is the tokens of a model as bytes. It is built once per model, never changes, and
// may be used from many goroutines.
type Vocabulary struct {
	tokens [][]byte // nil for what is never allowed
	ends   []int32  // sorted
	trie   *trie

	mu    sync.Mutex
	texts []*textTokens // of sets of characters that were asked for, latest last
}

// NewVocabulary returns the vocabulary of a model: tokens[id] are the bytes of a token, nil or
// empty for one that stands for no text, such as a control token or an id without a token. Those
// are never allowed, but for ends: the tokens that end a text, allowed where the text is
// complete. An end is never allowed as text, whatever its bytes are. The slices are the
// vocabulary's from then on.
func NewVocabulary(tokens [][]byte, ends []int32) *Vocabulary {
	v := &Vocabulary{tokens: slices.Clone(tokens), ends: slices.Compact(slices.Sorted(slices.Values(ends)))}
	v.ends = slices.DeleteFunc(v.ends, func(id int32) bool { return id < 0 || int(id) >= len(tokens) })
	for _, id := range v.ends {
		v.tokens[id] = nil
	}
	ids := make([]int32, 0, len(tokens))
	for id, b := range v.tokens {
		if len(b) > 0 {
			ids = append(ids, int32(id))
		}
	}
	v.trie = newTrie(v.tokens, ids)
	return v
}

// Size returns how many ids the vocabulary has.
func (v *Vocabulary) Size() int { return len(v.tokens) }

// words returns how many words a mask has.
func (v *Vocabulary) words() int { return (len(v.tokens) + 63) / 64 }

func (v *Vocabulary) isEnd(token int32) bool {
	_, ok := slices.BinarySearch(v.ends, token)
	return ok
}

// longestToken is the most bytes that a token may have; longer ones are never allowed.
const longestToken = 255

// trie is tokens by their bytes, in preorder: the children of a node follow it, and its subtree
// ends at end.
type trie struct {
	bytes []byte  // the last byte of each node
	depth []uint8 // how many bytes lead to it
	end   []int32
	first []int32 // [nodes+1] in ids
	ids   []int32 // the tokens that end at each node
}

// newTrie builds the trie of some tokens. Those longer than longestToken are left out.
func newTrie(tokens [][]byte, ids []int32) *trie {
	slices.SortFunc(ids, func(a, b int32) int {
		if c := bytes.Compare(tokens[a], tokens[b]); c != 0 {
			return c
		}
		return int(a) - int(b)
	})
	t := &trie{}
	var open [256]int32 // the node of each depth on the way to the present token
	var before []byte
	close := func(from, to int) { // the nodes of these depths end here
		for d := from; d > to; d-- {
			t.end[open[d]] = int32(len(t.bytes))
		}
	}
	for _, id := range ids {
		token := tokens[id]
		if len(token) > longestToken {
			continue
		}
		common := 0
		for common < min(len(before), len(token)) && before[common] == token[common] {
			common++
		}
		close(len(before), common)
		for d := common; d < len(token); d++ {
			open[d+1] = int32(len(t.bytes))
			t.bytes = append(t.bytes, token[d])
			t.depth = append(t.depth, uint8(d+1))
			t.end = append(t.end, 0)
			t.first = append(t.first, int32(len(t.ids)))
		}
		t.ids = append(t.ids, id)
		before = token
	}
	close(len(before), 0)
	t.first = append(t.first, int32(len(t.ids)))
	return t
}

// worthSplit is how many nodes a subtree must have for a split to be looked for.
const worthSplit = 64

// mark sets the bits of the tokens that may follow a place. Where a token leads to free text, as
// its first character in a string, those that go on with such text need not be tried: splits tells
// which they are. It may be nil.
func (t *trie) mark(at *place, words []uint64, splits *splits) {
	var way [256]*place
	way[0] = at
	var inside *textTokens // of the subtree that ends at until: its tokens that are text are set
	until := int32(0)
	for i := int32(0); int(i) < len(t.bytes); {
		if i >= until {
			inside = nil
		}
		d := t.depth[i]
		if inside != nil && inside.only(t, i) {
			i = t.end[i]
			continue
		}
		next := way[d-1].after(t.bytes[i])
		if next == nowhere {
			i = t.end[i]
			continue
		}
		way[d] = next
		set(words, t.ids[t.first[i]:t.first[i+1]])
		if inside == nil && splits != nil && t.end[i]-i > worthSplit {
			if inside = splits.after(next); inside != nil {
				until = t.end[i]
				set(words, inside.under(t, i))
			}
		}
		i++
	}
}

func set(words []uint64, ids []int32) {
	for _, id := range ids {
		words[id/64] |= 1 << (id % 64)
	}
}
