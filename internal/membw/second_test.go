package membw

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// TestSecondMethod compares Measure with ways of reading that share nothing with its wide loops:
// the standard library's searches and comparisons, and patterns that load one word of each line,
// which move as much memory and leave the core almost idle. Neither side may read 10 % more than
// the other: less means that membw misses the fastest way, more that it reads what is not memory or
// that the second method is no measure. Where membw itself tries a word of each line (on arm64 and
// without assembly), only the library's ways are independent of it.
//
// Each try measures both, one right after the other, and compares their best passes: other work on
// the cores only ever makes a pass slower. What counts is the median of the tries, since the memory
// itself may be shared with other machines and give more in one second than in the next. Tries go
// on until the two agree or patience ends. Where even membw's own passes differ so much that the
// machine must be busy, a wider margin holds. Where other programs take the processors from the
// readers, and the memory's bandwidth with them, or the best pass is half as quick again as the one
// in the middle, two moments have two bandwidths: the figures are printed and not compared.
func TestSecondMethod(t *testing.T) {
	const (
		margin, marginBusy = 0.10, 0.30
		steady             = 0.85 // the median pass, of the best one
		torn               = 0.65 // the same; below it the memory itself is another one now and then
		leastTries         = 3
		patience           = 12 * time.Second
		undisturbed        = 0.7 // of the time, each thread has a processor; beside one busy program, half
	)
	for _, threads := range []int{1, 2, 4, 8, 16} {
		if threads > min(runtime.GOMAXPROCS(0), runtime.NumCPU()) {
			break
		}
		size := max(512<<20, threads*64<<20) // more than a share of the third cache
		other := newSecond(t, threads, size)
		var tries []try
		var had processors
		begin := time.Now()
		for len(tries) < leastTries || apart(tries) > margin && time.Since(begin) < patience && had.share() >= undisturbed {
			r, err := Measure(t.Context(), Config{Threads: threads, Bytes: size})
			if err != nil {
				t.Fatal(err)
			}
			var best float64
			var name string
			had.during(t, threads, func() { best, name = other.read(r.Passes) })
			tries = append(tries, try{r, best, name})
		}
		m := medianTry(tries)
		t.Logf("threads %d: membw %.1f GB/s (median %.1f; %s), second method %.1f GB/s (%s); %.0f%%, %d tries, on its processors for %.0f%% of the time",
			threads, m.first.Max/1e9, m.first.Median/1e9, m.first.Loop, m.second/1e9, m.name, 100*m.ratio(), len(tries), 100*had.share())
		allowed := margin
		if m.first.Median < steady*m.first.Max {
			allowed = marginBusy
		}
		if apart(tries) > allowed && had.share() >= undisturbed && m.first.Median >= torn*m.first.Max {
			t.Errorf("threads %d: membw reads %.1f GB/s, the second method %.1f: more than %.0f %% apart; its ways, GB/s: %v",
				threads, m.first.Max/1e9, m.second/1e9, 100*allowed, other)
		}
		other.close()
	}
}

// processors is how long threads that are never idle had a processor, and how long they wanted one.
type processors struct{ had, wanted time.Duration }

// during adds what f has, in which this many threads are never idle.
func (p *processors) during(t *testing.T, threads int, f func()) {
	t.Helper()
	begin, before := time.Now(), processorTime(t)
	f()
	p.had += processorTime(t) - before
	p.wanted += time.Since(begin) * time.Duration(threads)
}

func (p *processors) share() float64 { return float64(p.had) / float64(p.wanted) }

// processorTime returns for how long the threads of this process have run.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// try is one measurement of both sides.
type try struct {
	first  Rate
	second float64 // bytes a second, of the best pass
	name   string  // of the way that it read in
}

func (t try) ratio() float64 { return t.first.Max / t.second }

// medianTry returns the try with the median ratio, the nearer to 1 of two.
func medianTry(tries []try) try {
	x := slices.SortedFunc(slices.Values(tries), func(a, b try) int { return cmp.Compare(a.ratio(), b.ratio()) })
	low, high := x[(len(x)-1)/2], x[len(x)/2]
	if math.Abs(low.ratio()-1) < math.Abs(high.ratio()-1) {
		return low
	}
	return high
}

// apart returns by how much the median try's sides differ, of the second.
func apart(tries []try) float64 { return math.Abs(medianTry(tries).ratio() - 1) }

// second is the second method: several ways of reading an array of ones.
type second struct {
	threads int
	a       *array
	at      int // the word that the next pass begins with
	ways    []way
}

// way is a way of reading. whole reports whether it found ones alone.
type way struct {
	name  string
	whole func(w []uint64) bool
	rate  float64 // bytes a second, of the fastest pass of the last trial
}

func newSecond(t *testing.T, threads, size int) *second {
	t.Helper()
	a, err := newArray(size)
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.words {
		a.words[i] = 1
	}
	s := &second{threads: threads, a: a, ways: []way{
		{name: "bytes.IndexByte", whole: func(w []uint64) bool { return bytes.IndexByte(bytesOf(w), 2) < 0 }},
		{name: "bytes.Equal", whole: func(w []uint64) bool { return bytes.Equal(bytesOf(w[:len(w)/2]), bytesOf(w[len(w)/2:])) }},
		{name: "a word of each line", whole: func(w []uint64) bool { return eachLine1(w) == uint64(len(w)/8) }},
		{name: "the same, 2 streams", whole: func(w []uint64) bool { return eachLine2(w) == uint64(len(w)/8) }},
		{name: "4 streams", whole: func(w []uint64) bool { return eachLine4(w) == uint64(len(w)/8) }},
		{name: "8 streams", whole: func(w []uint64) bool { return eachLine8(w) == uint64(len(w)/8) }},
	}}
	return s
}

func (s *second) close() { s.a.release() }

// String lists the ways with their rates.
func (s *second) String() string {
	var all []string
	for _, w := range s.ways {
		all = append(all, fmt.Sprintf("%s %.1f", w.name, w.rate/1e9))
	}
	return strings.Join(all, ", ")
}

// read tries every way, makes n passes in the fastest, and returns the rate of the best and the
// way's name.
func (s *second) read(n int) (float64, string) {
	for i := range s.ways {
		s.ways[i].rate = 0
	}
	for range 4 {
		for i := range s.ways {
			s.ways[i].rate = max(s.ways[i].rate, s.pass(&s.ways[i]))
		}
	}
	best := slices.MaxFunc(s.ways, func(a, b way) int { return cmp.Compare(a.rate, b.rate) })
	best.rate = 0 // trials do not count, as in Measure
	for range n {
		best.rate = max(best.rate, s.pass(&best))
	}
	return best.rate, best.name
}

// pass returns the bytes a second of all threads together. They take pieces as they finish the
// last, and spin for the start and for the end so that no time passes with waking one.
func (s *second) pass(w *way) float64 {
	const (
		each  = 32 << 20 / wordBytes
		piece = 1 << 20 / wordBytes
	)
	var (
		next, ready, done atomic.Int64
		begun             atomic.Bool
	)
	total := s.threads * each
	read := func() {
		for from := int(next.Add(piece)) - piece; from < total; from = int(next.Add(piece)) - piece {
			at := (s.at + from) % len(s.a.words)
			if !w.whole(s.a.words[at : at+piece]) {
				panic("the second method has found what is not there: " + w.name)
			}
		}
	}
	for range s.threads - 1 {
		go func() {
			for ready.Add(1); !begun.Load(); {
				runtime.Gosched()
			}
			read()
			done.Add(1)
		}()
	}
	await(&ready, s.threads-1)
	begin := time.Now()
	begun.Store(true)
	read()
	await(&done, s.threads-1)
	took := time.Since(begin)
	s.at = (s.at + total) % len(s.a.words)
	return float64(total*wordBytes) / took.Seconds()
}

func await(count *atomic.Int64, n int) {
	for count.Load() < int64(n) {
		runtime.Gosched()
	}
}

func bytesOf(w []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), len(w)*wordBytes)
}

// eachLine1 adds one word of each line of 64 bytes, in order.
func eachLine1(w []uint64) uint64 {
	var s0, s1, s2, s3 uint64
	for i := 0; i+32 <= len(w); i += 32 {
		s0, s1, s2, s3 = s0+w[i], s1+w[i+8], s2+w[i+16], s3+w[i+24]
	}
	return s0 + s1 + s2 + s3
}

// eachLine2 does so in both halves by turns. Each has a load instruction of its own: a prefetcher
// that tells streams by their instruction takes one instruction in many streams for huge strides.
func eachLine2(w []uint64) uint64 {
	var s0, s1 uint64
	n := len(w) / 2
	x, y := w[:n], w[n:][:n]
	for i := 0; i < n; i += 8 {
		s0, s1 = s0+x[i], s1+y[i]
	}
	return s0 + s1
}

func eachLine4(w []uint64) uint64 {
	var s0, s1, s2, s3 uint64
	n := len(w) / 4
	x, y, z, v := w[:n], w[n:][:n], w[2*n:][:n], w[3*n:][:n]
	for i := 0; i < n; i += 8 {
		s0, s1, s2, s3 = s0+x[i], s1+y[i], s2+z[i], s3+v[i]
	}
	return s0 + s1 + s2 + s3
}

func eachLine8(w []uint64) uint64 {
	var s0, s1, s2, s3 uint64
	n := len(w) / 8
	a, b, c, d := w[:n], w[n:][:n], w[2*n:][:n], w[3*n:][:n]
	e, f, g, h := w[4*n:][:n], w[5*n:][:n], w[6*n:][:n], w[7*n:][:n]
	for i := 0; i < n; i += 8 {
		s0, s1, s2, s3 = s0+a[i], s1+b[i], s2+c[i], s3+d[i]
		s0, s1, s2, s3 = s0+e[i], s1+f[i], s2+g[i], s3+h[i]
	}
	return s0 + s1 + s2 + s3
}
