package diskbw

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

// Align is what direct reads begin at and are multiples of.
const Align = 4096

const (
	defaultRounds = 3
	defaultTime   = 300 * time.Millisecond
	maxDepth      = 256
)

// Config says what to measure. Files and RecordBytes must be set.
type Config struct {
	Files       []string // each holds records without gaps
	RecordBytes int
	// Depths are the numbers of reads under way at once. nil means 1, 2, 4 and 8.
	Depths []int
	// Modes are the ways to read. nil means both.
	Modes []Mode
	// Rounds is how often each depth and mode has its turn. 0 means 3.
	Rounds int
	// Time is how long a turn reads. 0 means 300 ms. A turn ends when its last read has.
	Time time.Duration
	// Seed chooses the records.
	Seed uint64
}

// Mode is a way to read.
type Mode string

// The modes.
const (
	Direct   Mode = "direct"   // past the page cache
	Buffered Mode = "buffered" // through it, cold
)

// Rate is the speed of one mode and depth, in bytes of records a second.
type Rate struct {
	Mode             Mode
	Depth            int
	Median, Min, Max float64 // of the rounds
	Reads            int     // of all rounds
	PerRead          time.Duration
}

// UnsupportedError reports a mode that the file system does not support.
type UnsupportedError struct {
	Mode Mode
	Path string
	Err  error
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("diskbw: %s does not support %s reads: %v", e.Path, e.Mode, e.Err)
}
func (e *UnsupportedError) Unwrap() error { return e.Err }

// Validate reports every field that Measure refuses.
func (c Config) Validate() error {
	var errs []error
	bad := func(cond bool, format string, args ...any) {
		if cond {
			errs = append(errs, fmt.Errorf("diskbw: "+format, args...))
		}
	}
	bad(len(c.Files) == 0, "Files is empty")
	bad(c.RecordBytes < 1 || c.RecordBytes > 1<<30, "RecordBytes is %d, must be 1 to %d", c.RecordBytes, 1<<30)
	for _, d := range c.Depths {
		bad(d < 1 || d > maxDepth, "Depths has %d, must be 1 to %d", d, maxDepth)
	}
	for _, m := range c.Modes {
		bad(m != Direct && m != Buffered, "Modes has %q, must be %s or %s", m, Direct, Buffered)
	}
	bad(c.Rounds < 0 || c.Time < 0, "Rounds is %d and Time %v, neither may be negative", c.Rounds, c.Time)
	return errors.Join(errs...)
}

// Measure reads records and returns a Rate for each mode and depth. A mode that the file system
// does not support has none; if no mode is left, the error is an *UnsupportedError. If ctx ends,
// Measure returns its error within a record.
func Measure(ctx context.Context, c Config) ([]Rate, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Depths == nil {
		c.Depths = []int{1, 2, 4, 8}
	}
	if c.Modes == nil {
		c.Modes = []Mode{Direct, Buffered}
	}
	if c.Rounds == 0 {
		c.Rounds = defaultRounds
	}
	if c.Time == 0 {
		c.Time = defaultTime
	}
	turns, err := openTurns(c)
	if err != nil {
		return nil, err
	}
	defer turns.close()
	if len(turns.modes) == 0 {
		return nil, turns.refused
	}
	return turns.measure(ctx, c)
}

// turns holds what the turns share.
type turns struct {
	modes   []Mode
	files   map[Mode][]*os.File
	refused error
	records []record
	pool    *buffers
	random  *rand.Rand
}

// record is a place in a file.
type record struct {
	file   int
	offset int64
}

func openTurns(c Config) (_ *turns, err error) {
	t := &turns{files: map[Mode][]*os.File{}, random: rand.New(rand.NewPCG(c.Seed, 0))}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	for _, mode := range c.Modes {
		files, err := openAll(c.Files, mode)
		var no *UnsupportedError
		if errors.As(err, &no) {
			t.refused = err
			continue
		}
		if err != nil {
			return t, err
		}
		t.modes, t.files[mode] = append(t.modes, mode), files
	}
	for i, path := range c.Files {
		info, err := os.Stat(path)
		if err != nil {
			return t, fmt.Errorf("diskbw: %w", err)
		}
		for at := int64(0); at+int64(c.RecordBytes) <= info.Size(); at += int64(c.RecordBytes) {
			t.records = append(t.records, record{i, at})
		}
	}
	if len(t.records) == 0 {
		return t, fmt.Errorf("diskbw: none of %d files is as long as a record of %d bytes", len(c.Files), c.RecordBytes)
	}
	t.pool, err = newBuffers(slices.Max(c.Depths), c.RecordBytes)
	return t, err
}

// openAll opens all files in a mode, or none of them.
func openAll(paths []string, mode Mode) (files []*os.File, err error) {
	for _, path := range paths {
		f, err := open(path, mode)
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func (t *turns) close() {
	for _, files := range t.files {
		for _, f := range files {
			f.Close() // only read
		}
	}
	if t.pool != nil {
		t.pool.release()
	}
}

// measure gives each mode and depth a turn, round after round.
func (t *turns) measure(ctx context.Context, c Config) ([]Rate, error) {
	type key struct {
		mode  Mode
		depth int
	}
	speeds, rates := map[key][]float64{}, map[key]*Rate{}
	for range c.Rounds {
		for _, mode := range t.modes {
			for _, depth := range c.Depths {
				reads, took, waited, err := t.turn(ctx, c, mode, depth)
				if err != nil {
					return nil, err
				}
				k := key{mode, depth}
				if rates[k] == nil {
					rates[k] = &Rate{Mode: mode, Depth: depth}
				}
				r := rates[k]
				r.PerRead = (r.PerRead*time.Duration(r.Reads) + waited) / time.Duration(r.Reads+reads)
				r.Reads += reads
				speeds[k] = append(speeds[k], float64(reads)*float64(c.RecordBytes)/max(took.Seconds(), 1e-9))
			}
		}
	}
	var out []Rate
	for _, mode := range t.modes {
		for _, depth := range c.Depths {
			k := key{mode, depth}
			r, x := rates[k], slices.Sorted(slices.Values(speeds[k]))
			r.Median, r.Min, r.Max = (x[(len(x)-1)/2]+x[len(x)/2])/2, x[0], x[len(x)-1]
			out = append(out, *r)
		}
	}
	return out, nil
}
