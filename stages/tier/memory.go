package tier

import (
	"errors"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// memory is blocks of records, and the orders that make and free them.
type memory struct {
	perBlock int
	limit    int      // records
	held     int      // records in blocks, of those that are being freed too
	blocks   []*block // by number; nil for a number that is not in use
	free     []*record
	unused   int // records that hold an expert and are not in use
	order    Order
}

// block is records that are pinned and freed together.
type block struct {
	records []record
	users   int  // of all its records
	leaving bool // to be freed when none of its records is in use
}

// record is room for one expert.
type record struct {
	id    Record
	block *block
	key   int  // layer·experts + expert, if it is there or first is set
	there bool // the expert's bytes
	users int  // reads

	// While it is being filled: the reads that wait for it, of which the first fills it; the
	// highest of their ranks; and whether the fill is overdue.
	first, last stages.SlotID
	rank        stages.Rank
	late        bool

	prev, next *record // of the recency's ring
}

func newMemory(perBlock, limit int) memory {
	m := memory{perBlock: perBlock, limit: limit}
	m.add(0, perBlock)
	return m
}

// add makes a block.
func (m *memory) add(number int32, records int) {
	b := &block{records: make([]record, records)}
	for i := range b.records {
		b.records[i] = record{id: Record{Block: number, Index: int32(i)}, block: b, first: none, last: none}
		m.free = append(m.free, &b.records[i])
	}
	if int(number) == len(m.blocks) {
		m.blocks = append(m.blocks, nil)
	}
	m.blocks[number] = b
	m.held += records
}

func (m *memory) hasRoom() bool { return len(m.free) > 0 || m.unused > 0 }

// takeFree returns a record without an expert, or nil.
func (m *memory) takeFree() *record {
	n := len(m.free) - 1
	if n < 0 {
		return nil
	}
	r := m.free[n]
	m.free = m.free[:n]
	return r
}

// putFree gives back a record without an expert.
func (m *memory) putFree(r *record) {
	if !r.block.leaving {
		m.free = append(m.free, r)
	}
}

// next orders what memory needs next, if nothing is ordered: what is given up goes before what is
// new.
func (m *memory) next(out *Effects) {
	if m.order.Kind != NoOrder {
		return
	}
	if i := slices.IndexFunc(m.blocks, func(b *block) bool { return b != nil && b.leaving && b.users == 0 }); i >= 0 {
		m.order = Order{Kind: Free, Block: int32(i), Records: len(m.blocks[i].records)}
	} else if n := min(m.perBlock, m.limit-m.held); n > 0 && len(m.free) <= m.perBlock/2 {
		i := slices.Index(m.blocks, nil)
		if i < 0 {
			i = len(m.blocks)
		}
		m.order = Order{Kind: Pin, Block: int32(i), Records: n}
	}
	out.Memory = m.order
}

func (m *memory) pinned(err error) error {
	o := m.order
	if o.Kind != Pin {
		return errors.New("tier: memory was pinned that was not asked for")
	}
	m.order = Order{}
	if err != nil {
		m.limit = min(m.limit, m.held)
		return nil
	}
	m.add(o.Block, o.Records)
	return nil
}

func (m *memory) freed() error {
	o := m.order
	if o.Kind != Free {
		return errors.New("tier: memory was freed that was to stay")
	}
	m.order = Order{}
	m.held -= o.Records
	m.blocks[o.Block] = nil
	return nil
}

// shrink makes blocks leave until the others keep to the limit, or only the first is left. Unused
// records of theirs are emptied at once, the others as their uses end.
func (c *Core) shrink() {
	m := &c.memory
	if m.held <= m.limit {
		return
	}
	staying := 0
	for _, b := range m.blocks {
		if b != nil && !b.leaving {
			staying += len(b.records)
		}
	}
	for i := len(m.blocks) - 1; i > 0 && staying > m.limit; i-- {
		b := m.blocks[i]
		if b == nil || b.leaving {
			continue
		}
		b.leaving = true
		staying -= len(b.records)
		m.free = slices.DeleteFunc(m.free, func(r *record) bool { return r.block == b })
		for k := range b.records {
			if r := &b.records[k]; r.there && r.users == 0 {
				c.empty(r)
			}
		}
	}
}
