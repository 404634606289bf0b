package host

import "sync/atomic"

// part is the chunks from low to before high: low is the lower half of the word, high the upper.
// The thread that owns the part takes chunks from the front, so that it walks through memory in
// order; threads that have nothing left take them from the back. A part has a cache line to itself.
type part struct {
	span     atomic.Uint64
	upcoming stretch // what the thread reads in the next job; of the job's caller until it begins
	_        [lineBytes - 8 - 16]byte
}

func (p *part) set(low, high int) { p.span.Store(uint64(high)<<32 | uint64(low)) }

// first takes the first chunk.
func (p *part) first() (int, bool) {
	for {
		span := p.span.Load()
		low, high := uint32(span), uint32(span>>32)
		if low >= high {
			return 0, false
		}
		if p.span.CompareAndSwap(span, span+1) {
			return int(low), true
		}
	}
}

// last takes the last chunk.
func (p *part) last() (int, bool) {
	for {
		span := p.span.Load()
		low, high := uint32(span), uint32(span>>32)
		if low >= high {
			return 0, false
		}
		if p.span.CompareAndSwap(span, span-1<<32) {
			return int(high - 1), true
		}
	}
}
