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
	// Short passes find a busy machine's quiet moments; these take some 3 ms.
	passBlocks  = 16 // of each thread
	minReadings = 5  // of the whole array
	trialPasses = 3  // of each loop, to choose one
	maxThreads  = 1024
)

// Config says what to measure. The zero value is ready for use.
type Config struct {
	// Threads is how many threads read at once. 0 means the cores this process may use. More than
	// that measures the scheduler too.
	Threads int
	// Bytes is the length of the array that the threads share, a multiple of BlockBytes with at
	// least a block for each thread. 0 means 1 GiB, or a block for each thread if that is more. An
	// array that fits in the caches shows their speed.
	Bytes int
	// Time is how long to measure. 0 means until the whole array has been read 5 times, which every
	// measurement does at least.
	Time time.Duration
}

// Validate reports every field that Measure refuses.
func (c Config) Validate() error {
	var errs []error
	if c.Threads < 0 || c.Threads > maxThreads {
		errs = append(errs, fmt.Errorf("membw: Threads is %d, must be 0 (all cores) to %d", c.Threads, maxThreads))
	}
	if least := max(c.Threads, 1) * BlockBytes; c.Bytes != 0 && (c.Bytes < least || c.Bytes%BlockBytes != 0) {
		errs = append(errs, fmt.Errorf("membw: Bytes is %d, must be 0 (the default) or a multiple of %d, at least %d", c.Bytes, BlockBytes, least))
	}
	if c.Time < 0 {
		errs = append(errs, fmt.Errorf("membw: Time is %v, must not be negative", c.Time))
	}
	return errors.Join(errs...)
}

// Rate is the speed of the passes, in bytes a second of all threads together. A pass reads a part
// of the array, the next pass the part that follows.
type Rate struct {
	Median, Min, Max float64
	Passes           int
	Threads          int
	Bytes            int    // of the array
	PassBytes        int    // of a pass
	Loop             string // the fastest: its instructions, streams and prefetches
}

// Measure chooses the loop that reads the array fastest and lets the threads read with it again and
// again. The memory is outside the Go heap and released at the end. If ctx ends, Measure returns
// its error within a pass.
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
	r, err := newReader(ctx, c.Threads, c.Bytes)
	if err != nil {
		return Rate{}, err
	}
	defer r.close()
	l, err := r.fastest(ctx, loops())
	if err != nil {
		return Rate{}, err
	}
	var rates []float64
	begin := time.Now()
	for n := 0; n < minReadings*c.Bytes || time.Since(begin) < c.Time; n += r.passBytes() {
		rate, err := r.pass(ctx, l)
		if err != nil {
			return Rate{}, err
		}
		rates = append(rates, rate)
	}
	slices.Sort(rates)
	return Rate{
		Median: median(rates), Min: rates[0], Max: rates[len(rates)-1], Passes: len(rates),
		Threads: c.Threads, Bytes: c.Bytes, PassBytes: r.passBytes(), Loop: l.name,
	}, nil
}

// median returns the median of sorted values.
func median(x []float64) float64 { return (x[(len(x)-1)/2] + x[len(x)/2]) / 2 }

// reader is an array and the threads that read it, part after part.
type reader struct {
	*array
	threads *threads
	blocks  int // of the array
	each    int // blocks of a pass
	at      int // the block that the next pass begins with
}

// newReader allocates an array and touches it. close releases it.
func newReader(ctx context.Context, n, bytes int) (*reader, error) {
	a, err := newArray(bytes)
	if err != nil {
		return nil, err
	}
	blocks := bytes / BlockBytes
	r := &reader{array: a, threads: startThreads(n), blocks: blocks, each: min(blocks, n*passBlocks)}
	a.touch(ctx, r.threads)
	return r, nil
}

func (r *reader) close() {
	r.threads.end()
	r.release()
}

func (r *reader) passBytes() int { return r.each * BlockBytes }

// fastest tries the loops in turns and returns the one with the fastest pass.
func (r *reader) fastest(ctx context.Context, all []loop) (best loop, err error) {
	most := 0.0
	for round := range 1 + trialPasses {
		for _, l := range all {
			rate, err := r.pass(ctx, l)
			if err != nil {
				return best, err
			}
			if round > 0 && rate > most { // the first round warms up
				best, most = l, rate
			}
		}
	}
	return best, nil
}

// pass reads the next part of the array and returns the bytes a second.
func (r *reader) pass(ctx context.Context, l loop) (float64, error) {
	if ctx.Err() != nil {
		return 0, fmt.Errorf("membw: %w", context.Cause(ctx))
	}
	start := time.Now()
	r.read(r.threads, l, r.at, r.each)
	seconds := time.Since(start).Seconds()
	r.at = (r.at + r.each) % r.blocks
	return float64(r.passBytes()) / max(seconds, 1e-9), nil
}

// touch sets every word to one, so that each page exists and is not the shared page of zeros. It
// stops when ctx ends.
func (a *array) touch(ctx context.Context, t *threads) {
	var next atomic.Int64
	blocks := len(a.words) / blockWords
	t.all(func() {
		for i := int(next.Add(1) - 1); i < blocks && ctx.Err() == nil; i = int(next.Add(1) - 1) {
			for k := range a.block(i) {
				a.block(i)[k] = 1
			}
		}
	})
}

// read reads n blocks from block first on, past the end from the beginning. The sum proves that
// neither the compiler nor the loop left out a word that the loop should load.
func (a *array) read(t *threads, l loop, first, n int) {
	var next, sum atomic.Int64
	blocks := len(a.words) / blockWords
	t.all(func() {
		mine := uint64(0)
		for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
			mine += l.sum(a.block((first + i) % blocks))
		}
		sum.Add(int64(mine))
	})
	if want := int64(n * blockWords / l.step); sum.Load() != want {
		panic(fmt.Sprintf("membw: %s: the sum of %d ones is %d", l.name, want, sum.Load()))
	}
}

func (a *array) block(i int) []uint64 { return a.words[i*blockWords : (i+1)*blockWords] }
