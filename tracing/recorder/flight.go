package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/moeflux/moeflux-actor/internal/durable"
)

// Flight says when records of something slow are written, and how much of that is kept.
type Flight struct {
	// Dir is the folder for the files. It is made if need be. "" means none.
	Dir string
	// After is how long a token, a step, or the wait of a request for its first step may take. 0
	// means any time.
	After time.Duration
	// Times is how many times as long as usual, by the median of the last hundred, a token may
	// take, or a step; a prompt's step is compared with those of about as many rows. 0 means 5,
	// negative any time. What takes less than 10 ms more than usual is never slow.
	Times float64
	// MaxFiles and MaxBytes bound the recorder's files in the folder: the oldest give way. 0 means
	// 16 files and 256 MiB.
	MaxFiles int
	MaxBytes int64
	// Pause is the least time from one file to the next, but for those that Dump asks for. 0 means
	// 10 s.
	Pause time.Duration
}

// The names of the files begin and end so.
const (
	prefix = "flight-"
	suffix = ".records"
)

// flight looks for what is slow, and writes the files in a goroutine of its own.
type flight struct {
	cfg  *Config
	slow slow
	last time.Time // when a file was asked for that nobody but the recorder wanted

	jobs  chan job
	quit  chan struct{}
	ended chan struct{}
	told  bool // that a file could not be written; only the goroutine uses it

	dumps, missed atomic.Int64
}

// job is a file to write.
type job struct {
	reason string
	done   chan<- outcome // has a place for the answer; nil: nobody waits
}

type outcome struct {
	path string
	err  error
}

func newFlight(c *Config) (*flight, error) {
	f := &c.Flight
	f.Times, f.MaxFiles, f.MaxBytes, f.Pause = cmp.Or(f.Times, 5), cmp.Or(f.MaxFiles, 16), cmp.Or(f.MaxBytes, 256<<20), cmp.Or(f.Pause, 10*time.Second)
	if err := durable.MkdirAll(f.Dir, durable.Shared); err != nil {
		return nil, err
	}
	if err := writable(c.files, f.Dir); err != nil {
		return nil, err
	}
	x := &flight{cfg: c, slow: newSlow(*f), jobs: make(chan job, 1), quit: make(chan struct{}), ended: make(chan struct{})}
	go x.run()
	return x, nil
}

// writable makes a file in a folder and removes it.
func writable(files durable.FS, dir string) error {
	path := filepath.Join(dir, fmt.Sprintf(".%s%d.tmp", prefix, os.Getpid()))
	probe, err := files.Create(path, durable.Shared.File())
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), files.Remove(path))
}

// look has a file written if there is something slow among the new records.
func (f *flight) look() {
	reason, n := f.slow.look(f.cfg.Log)
	if n == 0 {
		return
	}
	if f.last.IsZero() || time.Since(f.last) >= f.cfg.Flight.Pause {
		select {
		case f.jobs <- job{reason: reason}:
			f.last = time.Now()
			return
		default: // the one before is not written yet
		}
	}
	f.missed.Add(int64(n))
}

// dump writes a file that somebody has asked for.
func (f *flight) dump(ctx context.Context, reason string) (string, error) {
	done := make(chan outcome, 1)
	select {
	case f.jobs <- job{reason, done}:
	case <-f.ended:
		return "", ErrClosed
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	select {
	case o := <-done:
		return o.path, o.err
	case <-f.ended:
		return "", ErrClosed
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// run writes files until close, and then what was asked for before.
func (f *flight) run() {
	defer close(f.ended)
	for {
		select {
		case j := <-f.jobs:
			f.do(j)
			continue
		case <-f.quit:
		}
		select {
		case j := <-f.jobs:
			f.do(j)
		default:
			return
		}
	}
}

// do writes one file and tells of it.
func (f *flight) do(j job) {
	path, err := f.write(j.reason)
	if err == nil {
		f.told = false
		f.dumps.Add(1)
		f.cfg.Logger.Info("records were written", "file", path, "why", j.reason)
	} else {
		f.missed.Add(1)
	}
	switch {
	case j.done != nil:
		j.done <- outcome{path, err}
	case err != nil && !f.told:
		f.told = true
		f.cfg.Logger.Warn("records of something slow could not be written", "why", j.reason, "error", err)
	}
}

// write writes what the log has, whole or not at all.
func (f *flight) write(reason string) (path string, err error) {
	r := f.cfg.Log.Recording()
	r.Meta = f.cfg.Meta()
	r.Meta.Reason, r.Meta.Written = reason, time.Now()
	if err := f.makeRoom(r.Bytes()); err != nil {
		return "", err
	}
	name := prefix + r.Meta.Written.UTC().Format("20060102T150405.000000000") + suffix
	path = filepath.Join(f.cfg.Flight.Dir, name)
	return path, durable.ReplaceIn(f.cfg.files, path, durable.Shared, r.Write)
}

// makeRoom removes the oldest files so that another one fits.
func (f *flight) makeRoom(bytes int64) error {
	if bytes > f.cfg.Flight.MaxBytes {
		return fmt.Errorf("recorder: the records take %d bytes, and the files may take %d", bytes, f.cfg.Flight.MaxBytes)
	}
	files, err := f.files()
	if err != nil {
		return err
	}
	sum := bytes
	for _, i := range files {
		sum += i.Size()
	}
	for len(files) > 0 && (len(files) >= f.cfg.Flight.MaxFiles || sum > f.cfg.Flight.MaxBytes) {
		if err := f.cfg.files.Remove(filepath.Join(f.cfg.Flight.Dir, files[0].Name())); err != nil {
			return err
		}
		sum -= files[0].Size()
		files = files[1:]
	}
	return nil
}

// files returns the recorder's files in the folder, the oldest first.
func (f *flight) files() (files []fs.FileInfo, err error) {
	all, err := os.ReadDir(f.cfg.Flight.Dir)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		if name := e.Name(); !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, suffix) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() { // else it was just removed
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return cmp.Compare(a.Name(), b.Name()) })
	return files, nil
}

// close returns when what was asked for is written.
func (f *flight) close() {
	close(f.quit)
	<-f.ended
}
