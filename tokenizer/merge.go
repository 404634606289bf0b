package tokenizer

import "math"

// noRank stands for a pair that does not merge. Ranks are below it: they count entries of a file.
const noRank = math.MaxUint32

// shortPiece is the length in bytes up to which a piece is merged by scanning; longer ones use a
// heap. The scan is quadratic with a small constant; the two cost the same near 60 bytes.
const shortPiece = 48

// pairTable maps a pair of token ids to the rank of its merge and the id of the result. It is an
// open hash table, never more than half full.
type pairTable struct {
	slots []pairSlot // a power of two
	shift uint       // 64 - log2(len(slots))
}

type pairSlot struct {
	pair uint64 // left id << 32 | right id
	rank uint32 // noRank: the slot is empty
	id   int32
}

// newPairTable makes a table with room for n pairs.
func newPairTable(n int) pairTable {
	size, shift := 2, uint(63)
	for size < 2*n {
		size *= 2
		shift--
	}
	slots := make([]pairSlot, size)
	for i := range slots {
		slots[i].rank = noRank
	}
	return pairTable{slots: slots, shift: shift}
}

func (t *pairTable) slot(pair uint64) *pairSlot {
	// Multiplying by an odd number near 2^64/golden ratio spreads ids that follow each other over
	// the top bits.
	i := (pair ^ pair>>29) * 0x9e3779b97f4a7c15 >> t.shift
	for {
		s := &t.slots[i]
		if s.pair == pair || s.rank == noRank {
			return s
		}
		i = (i + 1) & uint64(len(t.slots)-1)
	}
}

// put sets the merge of a pair. A later one replaces an earlier one, as in the reference.
func (t *pairTable) put(left, right int32, rank uint32, id int32) {
	pair := uint64(left)<<32 | uint64(right)
	*t.slot(pair) = pairSlot{pair: pair, rank: rank, id: id}
}

// get returns rank and result of a pair, noRank if it does not merge.
func (t *pairTable) get(left, right int32) (rank uint32, id int32) {
	s := t.slot(uint64(left)<<32 | uint64(right))
	return s.rank, s.id
}

// merger holds the scratch memory of one piece's merging.
type merger struct {
	ids   []int32  // tokens of the piece
	ranks []uint32 // rank of the pair that begins at each token
	next  []int32  // results of those pairs; in mergeLong also links, see there
	heap  []uint64
	after []int32
	prior []int32
}

// mergeShort merges m.ids in place: it merges the pair of lowest rank, the leftmost of equals,
// until no pair merges.
func (m *merger) mergeShort(table *pairTable) {
	n := len(m.ids)
	m.ranks, m.next = m.ranks[:0], m.next[:0]
	for i := 0; i+1 < n; i++ {
		rank, id := table.get(m.ids[i], m.ids[i+1])
		m.ranks, m.next = append(m.ranks, rank), append(m.next, id)
	}
	for n > 1 {
		best, at := uint32(noRank), 0
		for i, rank := range m.ranks {
			if rank < best {
				best, at = rank, i
			}
		}
		if best == noRank {
			break
		}
		m.ids[at] = m.next[at]
		copy(m.ids[at+1:], m.ids[at+2:])
		copy(m.ranks[at:], m.ranks[at+1:])
		copy(m.next[at:], m.next[at+1:])
		n--
		m.ids, m.ranks, m.next = m.ids[:n], m.ranks[:n-1], m.next[:n-1]
		if at > 0 {
			m.ranks[at-1], m.next[at-1] = table.get(m.ids[at-1], m.ids[at])
		}
		if at+1 < n {
			m.ranks[at], m.next[at] = table.get(m.ids[at], m.ids[at+1])
		}
	}
}

// mergeLong does the same as mergeShort in n log n steps. Tokens stay at the index of their first
// byte, linked to their neighbours; the heap holds rank<<32|index of every pair that was seen, and
// an entry whose rank is no longer that of the pair at its index is stale. A pair has one rank, so
// equal ranks mean the same pair.
func (m *merger) mergeLong(table *pairTable) {
	n := len(m.ids)
	m.ranks, m.next = resize(m.ranks, n), resize(m.next, n)
	m.after, m.prior, m.heap = resize(m.after, n), resize(m.prior, n), m.heap[:0]
	for i := range n {
		m.after[i], m.prior[i] = int32(i+1), int32(i-1)
		m.ranks[i] = noRank
		if i+1 < n {
			m.setPair(table, i)
		}
	}
	for len(m.heap) > 0 {
		top := m.pop()
		at := int(uint32(top))
		if m.ranks[at] != uint32(top>>32) {
			continue
		}
		right := int(m.after[at])
		m.ids[at] = m.next[at]
		m.ranks[right] = noRank
		m.after[at] = m.after[right]
		m.ranks[at] = noRank
		if following := int(m.after[at]); following < n {
			m.prior[following] = int32(at)
			m.setPair(table, at)
		}
		if before := int(m.prior[at]); before >= 0 {
			m.setPair(table, before)
		}
	}
	out := 0
	for i := 0; i < n; i = int(m.after[i]) {
		m.ids[out] = m.ids[i]
		out++
	}
	m.ids = m.ids[:out]
}

// setPair looks up the pair that begins at i and puts it on the heap if it merges.
func (m *merger) setPair(table *pairTable, i int) {
	m.ranks[i], m.next[i] = table.get(m.ids[i], m.ids[m.after[i]])
	if m.ranks[i] == noRank {
		return
	}
	m.heap = append(m.heap, uint64(m.ranks[i])<<32|uint64(i))
	h := m.heap
	for c := len(h) - 1; c > 0; {
		p := (c - 1) / 4
		if h[p] <= h[c] {
			break
		}
		h[p], h[c] = h[c], h[p]
		c = p
	}
}

// pop takes the smallest entry off the heap, which has four children a node.
func (m *merger) pop() uint64 {
	h := m.heap
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	m.heap = h
	for p := 0; ; {
		least := p
		for c := 4*p + 1; c <= 4*p+4 && c < len(h); c++ {
			if h[c] < h[least] {
				least = c
			}
		}
		if least == p {
			return top
		}
		h[p], h[least] = h[least], h[p]
		p = least
	}
}

// release drops scratch memory that a long piece has made large.
func (m *merger) release() {
	if cap(m.ids) > 1<<16 {
		*m = merger{}
	}
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
