package recorder

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// file writes all records to one file, in a goroutine of its own.
type file struct {
	cfg *Config
	to  io.WriteCloser
	w   *record.Writer

	wake  chan struct{} // a value means: look at the log
	ended chan struct{} // closed when the file is

	since atomic.Int64 // when the write under way began, in Unix nanoseconds; 0: none is
	told  atomic.Bool  // that it hangs

	failed        bool  // nothing is written any more; only the goroutine uses it
	bytes         int64 // written; likewise
	written, lost atomic.Int64
}

func newFile(c *Config) (*file, error) {
	to, err := c.open(c.File)
	if err != nil {
		return nil, err
	}
	f := &file{cfg: c, to: to, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go f.run()
	return f, nil
}

// poke makes the goroutine look at the log, unless it is at it.
func (f *file) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
	since := f.since.Load()
	if since != 0 && time.Since(time.Unix(0, since)) > f.cfg.hung && f.told.CompareAndSwap(false, true) {
		f.cfg.Logger.Warn("the file of records is not being written: records are lost until it is", "file", f.cfg.File, "after", f.cfg.hung)
	}
}

func (f *file) run() {
	defer close(f.ended)
	for range f.wake {
		f.drain()
	}
	f.drain()
	if err := f.to.Close(); err != nil {
		f.fail(err)
	}
	if n := f.lost.Load(); n > 0 {
		f.cfg.Logger.Warn("the file of records is not whole", "file", f.cfg.File, "records", f.written.Load(), "lost", n)
	}
}

// drain writes what is new in the log.
func (f *file) drain() {
	if !f.failed {
		f.since.Store(time.Now().UnixNano())
		err := f.write()
		f.since.Store(0)
		if err != nil {
			f.fail(err)
		}
	}
	if f.failed {
		f.lost.Store(total(f.cfg.Log) - f.written.Load())
	}
}

func (f *file) write() (err error) {
	if f.w == nil {
		m := f.cfg.Meta()
		m.Reason, m.Written = "record", time.Now()
		if f.w, err = record.NewWriter(f, m); err != nil {
			return err
		}
	}
	// an upper bound of what is new in the log
	if pending := total(f.cfg.Log) - f.written.Load() - f.lost.Load(); f.bytes+pending*record.MostBytes > f.cfg.FileBytes {
		return errors.Join(f.w.Flush(), errFull)
	}
	if err := f.w.Drain(f.cfg.Log); err != nil {
		return err
	}
	f.written.Store(int64(f.w.Written()))
	f.lost.Store(int64(f.w.Missed()))
	return nil
}

// errFull ends a file that is as large as it may be.
var errFull = errors.New("the file is full")

// Write writes to the file, and counts.
func (f *file) Write(p []byte) (int, error) {
	n, err := f.to.Write(p)
	f.bytes += int64(n)
	return n, err
}

// fail ends the writing: what comes after a hole in the file could not be read.
func (f *file) fail(err error) {
	switch {
	case f.failed:
	case errors.Is(err, errFull):
		f.failed = true
		f.cfg.Logger.Warn("the file of records is as large as it may be; it ends here", "file", f.cfg.File, "bytes", f.bytes, "most", f.cfg.FileBytes)
	default:
		f.failed = true
		f.cfg.Logger.Warn("the file of records cannot be written; it ends here", "file", f.cfg.File, "error", err)
	}
}

// close writes the rest and returns when the file is closed.
func (f *file) close() {
	close(f.wake)
	<-f.ended
}

// total returns how many records a log has got.
func total(l *record.Log) (n int64) {
	for _, t := range l.Totals() {
		n += int64(t)
	}
	return n
}
