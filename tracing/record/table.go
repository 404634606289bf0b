package record

import (
	"sync"
	"sync/atomic"
)

// Table keeps the last records of one type. One goroutine at a time adds; any may read, with a
// cursor. The zero value keeps nothing.
type Table[T any] struct {
	cur *block[T] // what Add writes into; the writer's
	at  int       // records in it; the writer's

	mu     sync.Mutex  // guards the rest: the writer takes it once a block
	blocks []*block[T] // oldest first; the last is cur
	most   int         // blocks
}

// block is a run of records. Those before n do not change while the block is pinned.
type block[T any] struct {
	first uint64 // the number of the first record, counted from 0 in the table's life
	recs  []T
	n     atomic.Int64 // records that may be read
	pins  int          // readers; guarded by the table's mutex
}

// blocksPerTable is how many blocks a table's memory is cut into. When all are full the oldest is
// used again, so a table holds at least (blocksPerTable-1)/blocksPerTable of what it has room for.
const blocksPerTable = 16

// init gives the table room for some records, at least one a block.
func (t *Table[T]) init(records int) {
	t.most = blocksPerTable
	size := max(1, records/blocksPerTable)
	for range t.most {
		t.blocks = append(t.blocks, &block[T]{recs: make([]T, size)})
	}
	t.blocks, t.cur = t.blocks[:1], t.blocks[0]
}

// Add appends a record. In a full table it takes the place of the oldest ones.
func (t *Table[T]) Add(r T) {
	b := t.cur
	if b == nil {
		return
	}
	if t.at == len(b.recs) {
		b = t.turn()
	}
	b.recs[t.at] = r
	t.at++
	publish(&b.n, int64(t.at))
}

// turn begins the next block. One that a reader holds is left to it, and another one made.
func (t *Table[T]) turn() *block[T] {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.cur.first + uint64(t.at)
	var b *block[T]
	switch {
	case len(t.blocks) < t.most: // room from init, not used yet
		n := len(t.blocks)
		t.blocks = t.blocks[:n+1]
		b = t.blocks[n]
	default:
		b = t.blocks[0]
		if b.pins > 0 {
			b = &block[T]{recs: make([]T, len(b.recs))}
		}
		copy(t.blocks, t.blocks[1:])
		t.blocks[len(t.blocks)-1] = b
	}
	b.first = first
	b.n.Store(0)
	t.cur, t.at = b, 0
	return b
}

// Total returns how many records were added since the table was made.
func (t *Table[T]) Total() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.blocks) == 0 {
		return 0
	}
	b := t.blocks[len(t.blocks)-1]
	return b.first + uint64(b.n.Load())
}

// Cursor is how far a reader has come in a table. The zero value begins at the first record.
type Cursor struct {
	next   uint64
	Missed uint64 // records that were forgotten before they were read
}

// Read calls f with all records that c has not seen, in order, in as many slices as they lie in,
// and moves c on. f must not keep or change the slice. A slow f costs the writer nothing but
// memory: of a block that f looks at another one is made.
func (t *Table[T]) Read(c *Cursor, f func([]T)) {
	for _, b := range t.pin(c.next) {
		n := uint64(b.n.Load())
		if from := max(c.next, b.first); from < b.first+n {
			c.Missed += from - c.next
			f(b.recs[from-b.first : n])
			c.next = b.first + n
		}
		t.unpin(b)
	}
}

// pin holds the blocks that have records from next on.
func (t *Table[T]) pin(next uint64) (held []*block[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.blocks {
		if b.first+uint64(b.n.Load()) > next {
			b.pins++
			held = append(held, b)
		}
	}
	return held
}

func (t *Table[T]) unpin(b *block[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.pins--
}

// all returns a copy of the records that the table holds, and how many it has forgotten.
func (t *Table[T]) all() (recs []T, forgotten uint64) {
	var c Cursor
	t.Read(&c, func(r []T) { recs = append(recs, r...) })
	return recs, c.Missed
}
