package launch

import "github.com/moeflux/moeflux-actor/gpu"

// pageSets are the page tables that a queue's device holds. All layers of a step look at the same
// pages, and the next step at the same and a few more: a table is written once a step at most, and
// the host looks at pages that are new.
type pageSets struct {
	sets  []*pageSet
	clock uint64 // counts Submits
}

// mostPageSets is how many tables are kept: those of a few steps in flight, with parts of their own
// for texts and prompts.
const mostPageSets = 8

// leastPages is the room of a sequence in a table, which is a power of two times that.
const leastPages = 8

// pageSet is the pages of some sequences, one after the other, each with room to grow.
type pageSet struct {
	sequences []pagedSequence
	addresses []uint64 // 0 where nothing is yet
	offsets   uint64   // all addresses, or'ed
	changed   bool     // since it was written to memory
	used      uint64   // the Submit that used it last
	memory    region
}

type pagedSequence struct {
	line     any // see gpu.Pages
	first, n int // of addresses
	room     int // entries
}

// pagesOf returns how many pages a segment looks at.
func pagesOf(s *gpu.KVSegment, pageRows int) int { return (s.Pos+s.Rows-1)/pageRows + 1 }

// find returns the set that holds the pages of segments, filled up to what they look at, and its
// index.
func (p *pageSets) find(segments []gpu.KVSegment, pageRows int) (*pageSet, int) {
	oldest := -1
	for i, s := range p.sets {
		if s.holds(segments, pageRows, s.used < p.clock) {
			s.used = p.clock
			s.grow(segments, pageRows)
			return s, i
		}
		if s.used < p.clock && (oldest < 0 || s.used < p.sets[oldest].used) {
			oldest = i
		}
	}
	if len(p.sets) < mostPageSets || oldest < 0 {
		p.sets, oldest = append(p.sets, &pageSet{}), len(p.sets)
	}
	s := p.sets[oldest]
	s.used = p.clock
	s.arrange(segments, pageRows)
	s.grow(segments, pageRows)
	return s, oldest
}

// holds reports whether the set is that of segments' sequences, in order. A sequence that has
// outgrown its room moves the others, which only a set that this Submit does not use yet can bear.
func (s *pageSet) holds(segments []gpu.KVSegment, pageRows int, movable bool) bool {
	if len(s.sequences) != len(segments) {
		return false
	}
	fits := true
	for i := range segments {
		q := &s.sequences[i]
		if q.line != segments[i].Pages.Line() {
			return false
		}
		fits = fits && pagesOf(&segments[i], pageRows) <= q.room
	}
	if !fits && movable {
		s.arrange(segments, pageRows)
	}
	return fits || movable
}

// arrange makes room for segments' sequences and forgets what was there.
func (s *pageSet) arrange(segments []gpu.KVSegment, pageRows int) {
	s.sequences, s.offsets, s.changed = s.sequences[:0], 0, true
	at := 0
	for i := range segments {
		room := leastPages
		for room < pagesOf(&segments[i], pageRows) {
			room *= 2
		}
		s.sequences = append(s.sequences, pagedSequence{line: segments[i].Pages.Line(), first: at, room: room})
		at += room
	}
	if cap(s.addresses) < at {
		s.addresses = make([]uint64, at)
	}
	s.addresses = s.addresses[:at]
	clear(s.addresses)
}

// grow adds the pages that are new.
func (s *pageSet) grow(segments []gpu.KVSegment, pageRows int) {
	for i := range segments {
		q := &s.sequences[i]
		for want := pagesOf(&segments[i], pageRows); q.n < want; q.n++ {
			a := addressOf(segments[i].Pages.At(q.n))
			s.addresses[q.first+q.n] = a
			s.offsets |= a
			s.changed = true
		}
	}
}

// write writes the sets that have changed and that this Submit uses. t keeps what is copied.
func (x *encoder) writePages(t *submitted) error {
	n := 0
	for _, s := range x.pages.sets {
		if s.used == x.pages.clock && s.changed {
			n += len(s.addresses)
		}
	}
	if cap(t.pages) < n {
		t.pages = make([]uint64, 0, max(n, 2*cap(t.pages)))
	}
	t.pages = t.pages[:0]
	for _, s := range x.pages.sets {
		if s.used != x.pages.clock || !s.changed {
			continue
		}
		from := len(t.pages)
		t.pages = append(t.pages, s.addresses...)
		src := bytesOf(t.pages[from:])
		if err := s.memory.reserve(x.d.b, len(src)); err != nil {
			return err
		}
		if err := x.stream.CopyIn(s.memory.memory, 0, src); err != nil {
			return err
		}
		s.changed = false
	}
	return nil
}

// forget makes all sets be written again: a Submit failed, and nobody knows what of it ran.
func (p *pageSets) forget() {
	for _, s := range p.sets {
		s.changed = true
	}
}

func (p *pageSets) release() {
	for _, s := range p.sets {
		s.memory.release()
	}
	p.sets = nil
}
