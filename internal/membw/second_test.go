package membw

import (
	"bytes"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// TestSecondMethod compares Measure with loops that others wrote: the fastest of the standard
// library's searches and comparisons, and of a plain sum, each over a slice of its own for every
// thread. Both sides try until their best passes agree, since a busy machine only ever makes
// reading slower; a loop that wastes half of the bandwidth never gets there. Where passes differ so
// much that the machine must be busy, a wider margin holds.
func TestSecondMethod(t *testing.T) {
	const (
		agree, agreeBusy = 0.90, 0.70
		steady           = 0.85 // the median pass, of the best one
		patience         = 12 * time.Second
	)
	for _, threads := range []int{1, 2, 4, 8, 16} {
		if threads > min(runtime.GOMAXPROCS(0), runtime.NumCPU()) {
			break
		}
		size := max(512<<20, threads*64<<20) // more than a share of the third cache
		other := newSecond(t, threads, size)
		var first, second, medianOf float64
		var loop string
		begin, tries := time.Now(), 0
		for ; tries < 2 || first < agree*second && time.Since(begin) < patience; tries++ {
			r, err := Measure(t.Context(), Config{Threads: threads, Bytes: size})
			if err != nil {
				t.Fatal(err)
			}
			if r.Max > first {
				first, medianOf, loop = r.Max, r.Median, r.Loop
			}
			second = max(second, other.best())
		}
		t.Logf("threads %d: membw %.1f GB/s (median %.1f; %s), second method %.1f GB/s; %.0f%%, %d tries",
			threads, first/1e9, medianOf/1e9, loop, second/1e9, 100*first/second, tries)
		least := agree
		if medianOf < steady*first {
			least = agreeBusy
		}
		if first < least*second {
			t.Errorf("threads %d: membw reads %.1f GB/s, the second method %.1f: it misses the fastest way", threads, first/1e9, second/1e9)
		}
		other.close()
	}
}

// second is the second method.
type second struct {
	threads int
	a       *array
	zeros   []byte
	at      int
}

func newSecond(t *testing.T, threads, size int) *second {
	t.Helper()
	a, err := newArray(size)
	if err != nil {
		t.Fatal(err)
	}
	zeros := unsafe.Slice((*byte)(unsafe.Pointer(&a.words[0])), size)
	for i := 0; i < len(zeros); i += 4096 {
		zeros[i] = 2
		zeros[i] = 0
	}
	return &second{threads: threads, a: a, zeros: zeros}
}

func (s *second) close() { s.a.release() }

// best returns the bytes a second of the fastest pass of some of every kind.
func (s *second) best() float64 {
	const each = 32 << 20
	var top float64
	for range 12 {
		for _, scan := range []func(b []byte) bool{absent, halvesEqual, sumIsZero} {
			var ready, done sync.WaitGroup
			start := make(chan struct{})
			results := make([]bool, s.threads)
			for i := range s.threads {
				from := (s.at + i*each) % len(s.zeros)
				part := s.zeros[from : from+each]
				ready.Add(1)
				done.Go(func() {
					ready.Done()
					<-start
					results[i] = scan(part)
				})
			}
			ready.Wait()
			begin := time.Now()
			close(start)
			done.Wait()
			rate := float64(s.threads*each) / time.Since(begin).Seconds()
			if slices.Contains(results, false) {
				panic("a second method has found what is not there")
			}
			s.at = (s.at + s.threads*each) % len(s.zeros)
			top = max(top, rate)
		}
	}
	return top
}

func absent(b []byte) bool { return bytes.IndexByte(b, 1) < 0 }

func halvesEqual(b []byte) bool { return bytes.Equal(b[:len(b)/2], b[len(b)/2:]) }

func sumIsZero(b []byte) bool {
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), len(b)/8)
	var s [4]uint64
	for i := 0; i+4 <= len(words); i += 4 {
		s[0] += words[i]
		s[1] += words[i+1]
		s[2] += words[i+2]
		s[3] += words[i+3]
	}
	return s == [4]uint64{}
}
