package host

import "unsafe"

// Between two large products threads have nothing to do for a while: small operations run on one of
// them, and stages choose experts. Meanwhile each thread brings to its second cache what it reads
// first in the next product. Decoding repeats its products token after token, so which one comes
// next is what came next the last time.

// upcomingBytes is the most that a thread fetches for the next product: a part of a second cache.
const upcomingBytes = 256 << 10

// upcomingRows is the most rows of X with which products wait for memory.
const upcomingRows = 4

// mostFollows is the most products that follows knows; a large model has a thousand.
const mostFollows = 1 << 14

// stretch is memory that a thread reads soon. It is fetched by instructions that do nothing where
// there is no memory, so it may be gone by then.
type stretch struct{ at, bytes uintptr }

// follows tells what threads read first in the product that follows another one. A product is known
// by where its weights begin.
type follows struct {
	last  uintptr // the product that ran last; 0: one with many rows of X
	table map[uintptr][]stretch
}

// begin notes that a product begins whose weights lie at w, and returns what its threads read
// first. The caller has to set that if fresh says so.
func (f *follows) begin(w []byte, threads int) (first []stretch, fresh bool) {
	if f.table == nil || len(f.table) == mostFollows {
		f.table = map[uintptr][]stretch{} // with many of models that are closed
	}
	before := f.last
	f.last = uintptr(unsafe.Pointer(unsafe.SliceData(w)))
	if before == 0 {
		return nil, false
	}
	if first = f.table[before]; len(first) != threads {
		first = make([]stretch, threads)
		f.table[before] = first
	}
	return first, first[0].at != f.last
}

// experts notes that routed experts run, whose weights are others each time.
func (f *follows) experts() { f.last |= 1 }

// next returns what threads read first in the product that is likely to come, or nil.
func (f *follows) next() []stretch {
	if f.last == 0 {
		return nil
	}
	return f.table[f.last]
}

// stretch returns the rows of a matrix from o to before end, as far as a thread fetches them.
func (m *matrix) stretch(o, end int) stretch {
	mem := m.weight[o*m.rowBytes : min(max(o, end), m.rows)*m.rowBytes]
	return stretch{uintptr(unsafe.Pointer(unsafe.SliceData(mem))), min(uintptr(len(mem)), upcomingBytes)}
}

// fetch fetches a stretch until there is another job than that of turn seen.
func (p *pool) fetch(s stretch, seen uint32) {
	const step = 64 * lineBytes // takes half a microsecond
	for s.bytes > 0 && !p.news(seen) {
		n := min(s.bytes, step)
		fetch(s.at, int(n+lineBytes-1)/lineBytes)
		s.at, s.bytes = s.at+n, s.bytes-n
	}
}
