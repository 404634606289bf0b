package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Config says what is written, and where. File and Flight.Dir may both be "".
type Config struct {
	Log *record.Log
	// Meta returns what the records are of. Reason and Written are the recorder's.
	Meta func() record.Meta
	// File gets all records. It is made anew. "" means none.
	File string
	// FileBytes bounds the file, which ends where the next records might not fit: the rest is
	// counted as lost. 0 means 1 GiB.
	FileBytes int64
	Flight    Flight
	// Logger hears of what is lost, once. nil means silence.
	Logger *slog.Logger
	// Every is how often the log is looked at. 0 means 20 ms. Records that the log forgets within
	// that time are lost.
	Every time.Duration

	open  func(path string) (io.WriteCloser, error) // nil: the system's
	files durable.FS                                // nil: the system's
	hung  time.Duration                             // after which a write is said to hang; 0: 5 s
}

// Recorder is a recorder at work. Its methods may be called from many goroutines.
type Recorder struct {
	cfg    Config
	file   *file   // nil: no file
	flight *flight // nil: no folder

	stop  chan struct{}
	ended chan struct{} // closed when nothing looks at the log any more
}

// DefaultFileBytes bounds a file of records where nothing else is said: some seven thousand tokens
// of a streamed model with 48 layers. Whoever reads a file has all of it in memory.
const DefaultFileBytes = 1 << 30

// The errors of Dump.
var (
	ErrNoFolder = errors.New("recorder: there is no folder for records; set Config.FlightDir")
	ErrClosed   = errors.New("recorder: closed")
)

// Start makes the file and the folder, and begins. The error names what cannot be made.
func Start(c Config) (*Recorder, error) {
	if c.Every == 0 {
		c.Every = 20 * time.Millisecond
	}
	if c.FileBytes == 0 {
		c.FileBytes = DefaultFileBytes
	}
	if c.hung == 0 {
		c.hung = 5 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.open == nil {
		c.open = func(path string) (io.WriteCloser, error) {
			return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, durable.Shared.File())
		}
	}
	if c.files == nil {
		c.files = durable.OS{}
	}
	r := &Recorder{cfg: c, stop: make(chan struct{}), ended: make(chan struct{})}
	var err error
	if c.Flight.Dir != "" {
		if r.flight, err = newFlight(&r.cfg); err != nil {
			return nil, fmt.Errorf("the folder for those of what is slow: %w", err)
		}
	}
	if c.File != "" {
		if r.file, err = newFile(&r.cfg); err != nil {
			if r.flight != nil {
				r.flight.close()
			}
			return nil, fmt.Errorf("the file for them: %w", err)
		}
	}
	go r.run()
	return r, nil
}

// run looks at the log until Close. It writes nothing itself.
func (r *Recorder) run() {
	defer close(r.ended)
	tick := time.NewTicker(r.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-tick.C:
		}
		if r.file != nil {
			r.file.poke()
		}
		if r.flight != nil {
			r.flight.look()
		}
	}
}

// Dump writes what the log has to a file in the folder for slow tokens and returns its path. reason
// says why, in words. It waits for a dump that is under way; when ctx ends first the file may still
// be written.
func (r *Recorder) Dump(ctx context.Context, reason string) (path string, err error) {
	if r.flight == nil {
		return "", ErrNoFolder
	}
	return r.flight.dump(ctx, reason)
}

// Stats is what a recorder has counted.
type Stats struct {
	Written int64 // records in the file
	Lost    int64 // records that are not in the file and will not be
	Dumps   int64 // files in the folder for slow tokens that this recorder has written
	Missed  int64 // slow tokens and steps whose records were not written
}

// Stats returns the figures until now.
func (r *Recorder) Stats() (s Stats) {
	if r.file != nil {
		s.Written, s.Lost = r.file.written.Load(), r.file.lost.Load()
	}
	if r.flight != nil {
		s.Dumps, s.Missed = r.flight.dumps.Load(), r.flight.missed.Load()
	}
	return s
}

// Close writes the rest and ends the recorder. Nobody writes to the log any more. It waits for what
// is being written, however long that takes.
func (r *Recorder) Close() {
	close(r.stop)
	<-r.ended
	if r.flight != nil {
		r.flight.look()
		r.flight.close()
	}
	if r.file != nil {
		r.file.close()
	}
}
