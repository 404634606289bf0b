// Package membw measures how fast threads can read main memory: the limit of a computation that reads its weights once
// for every token.
//
// The loop is portable Go with eight loads of 64 bits in flight that do not depend on each other. Where a few cores saturate the
// memory, that finds the memory's limit. Where a single core's loads are the limit, loops of wide SIMD loads
// or of streaming prefetches can read more: take the figure as what is surely reachable, not as what the memory modules
// could give. It knows nothing of NUMA: each thread's memory is where the system puts what that thread touches first.
package membw

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// MinBytes is the least that a thread may read in one pass. Whether that is more than a cache holds is for the
	// caller to know.
	MinBytes = 1 << 20

	minPasses  = 3
	wordBytes  = 8
	blockWords = 2 << 20 / wordBytes // first touched between two looks at the context
)

// Measure returns the bytes that threads read together in a second: the median of passes in which each reads an array of its own,
// of so many bytes, from the first to the last. bytes is rounded down to whole 64; it should be well above the last cache's size divided by the
// threads. Passes go on for d, and at least 3 are made; before that each array is written once. All memory lies outside
// the Go heap and is given back. If ctx ends, so does Measure within a pass, with ctx's error.
func Measure(ctx context.Context, threads, bytes int, d time.Duration) (bytesPerSecond float64, err error) {
	if threads < 1 || bytes < MinBytes {
		return 0, fmt.Errorf("membw: %d threads and %d bytes each, want at least 1 thread and %d bytes", threads, bytes, MinBytes)
	}
	readers := make([]*reader, 0, threads)
	defer func() {
		for _, r := range readers {
			r.end()
		}
	}()
	for range threads {
		r, err := newReader(bytes &^ 63)
		if err != nil {
			return 0, err
		}
		readers = append(readers, r)
	}
	all(readers, func(r *reader) { r.touch(ctx) })
	var rates []float64
	for begin := time.Now(); len(rates) < minPasses || time.Since(begin) < d; {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("membw: %w", err)
		}
		start := time.Now()
		all(readers, (*reader).read)
		seconds := time.Since(start).Seconds()
		rates = append(rates, float64(threads)*float64(bytes&^63)/max(seconds, 1e-9))
	}
	slices.Sort(rates)
	return rates[len(rates)/2], nil
}

// all lets every reader do f at once and waits for them.
func all(readers []*reader, f func(*reader)) {
	var wg sync.WaitGroup
	for _, r := range readers {
		wg.Add(1)
		r.work <- func() {
			defer wg.Done()
			f(r)
		}
	}
	wg.Wait()
}

// reader is a thread with an array.
type reader struct {
	mem   []byte
	words []uint64 // mem; all ones after touch
	work  chan func()
	ended chan struct{}
}

func newReader(bytes int) (*reader, error) {
	mem, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("membw: no memory for %d bytes: %w", bytes, err)
	}
	r := &reader{mem: mem, work: make(chan func()), ended: make(chan struct{})}
	r.words = unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), bytes/wordBytes) // mappings begin at a page
	go func() {
		defer close(r.ended)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		for f := range r.work {
			f()
		}
	}()
	return r, nil
}

// end waits for the thread's goroutine and gives the memory back.
func (r *reader) end() {
	close(r.work)
	<-r.ended
	if err := unix.Munmap(r.mem); err != nil {
		panic(fmt.Sprintf("membw: a mapping of ours cannot be given back: %v", err))
	}
}

// touch sets every word to one, so that each page is there and is not the page of zeros that all share. It stops when ctx
// ends.
func (r *reader) touch(ctx context.Context) {
	for block := range slices.Chunk(r.words, blockWords) {
		if ctx.Err() != nil {
			return
		}
		for i := range block {
			block[i] = 1
		}
	}
}

// read reads all words once. That their sum is right shows that none was left out, by the compiler or by us.
func (r *reader) read() {
	if got := sum(r.words); got != uint64(len(r.words)) {
		panic(fmt.Sprintf("membw: the sum of %d ones is %d", len(r.words), got))
	}
}

// sum returns Σ w[i] modulo 2^64; len(w) is a multiple of 8.
func sum(w []uint64) uint64 {
	var s0, s1, s2, s3, s4, s5, s6, s7 uint64
	for ; len(w) >= 8; w = w[8:] {
		s0 += w[0]
		s1 += w[1]
		s2 += w[2]
		s3 += w[3]
		s4 += w[4]
		s5 += w[5]
		s6 += w[6]
		s7 += w[7]
	}
	return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7
}
