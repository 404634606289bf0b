package membw

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// BlockBytes is what a thread takes at a time: the size of a huge page.
	BlockBytes = 2 << 20

	defaultBytes = 1 << 30
	minPasses    = 5
	maxThreads   = 1024
)

// Config says what is measured. The zero value is ready for use.
type Config struct {
	// Threads is how many read at once. 0 means the cores this process may use. More than there are
	// cores measures the scheduler too.
	Threads int
	// Bytes is the length of the array that they read together, a multiple of BlockBytes with a
	// block for each thread at least. 0 means 1 GiB, or a block for each thread if that is more.
	// Whether it is far more than the caches hold is for the caller to know; less shows their
	// speed.
	Bytes int
	// Time is how long passes go on; 5 are made at least. 0 means those 5. One pass may be slowed
	// by anything else that happens in the machine; many show what is usual.
	Time time.Duration
}

// Validate reports every field that Measure refuses.
func (c Config) Validate() error {
	var errs []error
	if c.Threads < 0 || c.Threads > maxThreads {
		errs = append(errs, fmt.Errorf("membw: %d threads, want 0 (all cores) to %d", c.Threads, maxThreads))
	}
	if least := max(c.Threads, 1) * BlockBytes; c.Bytes != 0 && (c.Bytes < least || c.Bytes%BlockBytes != 0) {
		errs = append(errs, fmt.Errorf("membw: %d bytes, want 0 (the default) or a multiple of %d from %d on", c.Bytes, BlockBytes, least))
	}
	if c.Time < 0 {
		errs = append(errs, fmt.Errorf("membw: a time of %v, want 0 or more", c.Time))
	}
	return errors.Join(errs...)
}

// Rate is what passes over the array came to, in bytes a second of all threads together.
type Rate struct {
	Median, Min, Max float64
	Passes           int
	Threads          int
	Bytes            int    // of a pass
	Loop             string // which loads: avx512, avx2, neon or portable
}

// Measure lets the threads read the array again and again; the first pass does not count. The
// memory is outside the Go heap and given back. If ctx ends, so does Measure within a pass, with
// ctx's error.
func Measure(ctx context.Context, c Config) (Rate, error) {
	if err := c.Validate(); err != nil {
		return Rate{}, err
	}
	if c.Threads == 0 {
		c.Threads = min(runtime.GOMAXPROCS(0), runtime.NumCPU(), maxThreads)
	}
	if c.Bytes == 0 {
		c.Bytes = max(defaultBytes, c.Threads*BlockBytes)
	}
	a, err := newArray(c.Bytes)
	if err != nil {
		return Rate{}, err
	}
	defer a.release()
	t := startThreads(c.Threads)
	defer t.end()
	a.touch(ctx, t)
	l := loops()[0]
	rates, err := passes(ctx, c, func() { a.read(t, l) })
	if err != nil {
		return Rate{}, err
	}
	slices.Sort(rates)
	n := len(rates)
	return Rate{
		Median: (rates[(n-1)/2] + rates[n/2]) / 2, Min: rates[0], Max: rates[n-1], Passes: n,
		Threads: c.Threads, Bytes: c.Bytes, Loop: l.name,
	}, nil
}

// passes measures read, which is one pass over the array, and returns the bytes a second of each
// but the first.
func passes(ctx context.Context, c Config, read func()) ([]float64, error) {
	var rates []float64
	begin := time.Now()
	for i := 0; i <= minPasses || time.Since(begin) < c.Time; i++ {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("membw: %w", context.Cause(ctx))
		}
		start := time.Now()
		read()
		if seconds := time.Since(start).Seconds(); i > 0 {
			rates = append(rates, float64(c.Bytes)/max(seconds, 1e-9))
		}
	}
	return rates, nil
}

// touch sets every word to one, so that each page is there and is not the page of zeros that all
// share. It stops when ctx ends.
func (a *array) touch(ctx context.Context, t *threads) {
	var next atomic.Int64
	t.all(func() {
		for block := a.take(&next); block != nil && ctx.Err() == nil; block = a.take(&next) {
			for i := range block {
				block[i] = 1
			}
		}
	})
}

// read reads all words once. That their sum is right shows that none was left out, by the compiler
// or by us.
func (a *array) read(t *threads, l loop) {
	var next, sum atomic.Int64
	t.all(func() {
		mine := uint64(0)
		for block := a.take(&next); block != nil; block = a.take(&next) {
			mine += l.sum(block)
		}
		sum.Add(int64(mine))
	})
	if got := sum.Load(); got != int64(len(a.words)) {
		panic(fmt.Sprintf("membw: %s: the sum of %d ones is %d", l.name, len(a.words), got))
	}
}

// take returns the next block, nil when all are taken.
func (a *array) take(next *atomic.Int64) []uint64 {
	const words = BlockBytes / wordBytes
	from := int(next.Add(1)-1) * words
	if from >= len(a.words) {
		return nil
	}
	return a.words[from : from+words]
}
