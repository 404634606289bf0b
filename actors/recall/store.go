package recall

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/snapshot/store"
	"github.com/moeflux/moeflux-actor/stages"
)

// Text is tokens, and whose they are.
type Text struct {
	Scope  string
	Tokens []int32 // read-only
}

// Frozen is a state that is read.
type Frozen struct {
	Tokens  []int32 // of all positions; read-only
	Source  snapshot.Source
	Release func() // the state is not read any more
}

// Config says what a store keeps, and where.
type Config struct {
	Dir   string // its files are in a folder there
	Limit int64  // most bytes of all files there, whoever made them
	// Identity tells engines apart that would compute other bits.
	Identity snapshot.Fingerprint
	Shape    *snapshot.Shape // of a state whose rows are float32
	// Freeze returns a state of as much of a text as there is now. It does not wait for memory.
	Freeze func(context.Context, Text) (Frozen, error)
	Log    *slog.Logger

	folder store.FS              // nil: the operating system's
	free   func() (int64, error) // nil: of the disk
}

// Store is what an engine has on disk. Its methods may be called from many goroutines, and those of
// a nil one do nothing.
type Store struct {
	cfg   Config
	parts parts
	files *store.Store
	key   []byte

	ctx     context.Context // of the goroutine that writes
	stop    context.CancelFunc
	ended   chan struct{}
	wake    chan struct{} // gets one when there is something to write
	failing bool          // the last text could not be written; the goroutine's own

	mu    sync.Mutex // guards the rest
	queue []job
	found index
	count struct{ stored, recalled int64 }
}

// job is a text to be written.
type job struct {
	Text
	done func()
}

// most is how many texts may wait to be written.
const most = 64

// dirName is the folder's name in Config.Dir.
const dirName = "texts"

// Open opens the folder, which it makes if need be, and finds what is there. ctx bounds the waiting
// for other processes.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	dir := filepath.Join(cfg.Dir, dirName)
	s := &Store{cfg: cfg, parts: partsOf(cfg.Shape), ended: make(chan struct{}), wake: make(chan struct{}, 1), found: newIndex()}
	if s.cfg.free == nil {
		s.cfg.free = func() (int64, error) { n, err := durable.FreeSpace(dir); return int64(n), err }
	}
	folder, err := store.Dir(dir)
	if err != nil {
		return nil, err
	}
	if s.cfg.folder != nil {
		folder = s.cfg.folder
	}
	if s.files, err = store.Open(ctx, folder, store.Options{}); err != nil {
		return nil, err
	}
	if s.key, err = readKey(dir); err != nil {
		return nil, err
	}
	if err := s.look(); err != nil {
		return nil, err
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	go s.run()
	return s, nil
}

// Keep has a text written whose state the engine has, as soon as those before it are, and calls
// done when that is over, whatever came of it. Where too many wait, the oldest is left out.
func (s *Store) Keep(t Text, done func()) {
	s.mu.Lock()
	var left []job
	if s.ctx.Err() != nil {
		left = append(left, job{t, done})
	} else {
		s.queue = append(s.queue, job{t, done})
		left = s.thin()
	}
	s.mu.Unlock()
	for _, j := range left {
		j.done()
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// thin takes out of the queue what is of no use or too much. s.mu is held.
func (s *Store) thin() (out []job) {
	last := s.queue[len(s.queue)-1]
	s.queue = slices.DeleteFunc(s.queue, func(j job) bool {
		longer := j.Scope == last.Scope && len(j.Tokens) < len(last.Tokens) && slices.Equal(j.Tokens, last.Tokens[:len(j.Tokens)])
		if longer && !s.parts.recurrent() { // the last one has all of it
			out = append(out, j)
			return true
		}
		return false
	})
	for len(s.queue) > most {
		out = append(out, s.queue[0])
		s.queue = slices.Delete(s.queue, 0, 1)
	}
	return out
}

// next returns the text to write next.
func (s *Store) next() (j job, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return j, false
	}
	j = s.queue[0]
	s.queue = slices.Delete(s.queue, 0, 1)
	return j, true
}

// run writes until the store is closed.
func (s *Store) run() {
	defer close(s.ended)
	for {
		if j, ok := s.next(); ok {
			if s.ctx.Err() == nil {
				s.tell(s.write(s.ctx, j.Text))
			}
			j.done()
			continue
		}
		if s.ctx.Err() != nil { // nothing comes into the queue any more
			return
		}
		select {
		case <-s.ctx.Done():
		case <-s.wake:
		}
	}
}

// tell says that texts cannot be written, and that they can be again: once each, since the cause
// mostly lasts.
func (s *Store) tell(err error) {
	switch {
	case s.ctx.Err() != nil || errors.Is(err, stages.ErrClosed): // this is the end
	case err != nil && !s.failing:
		s.cfg.Log.Warn("texts are not kept on disk, and may have to be read again after a restart", "error", err)
	case err == nil && s.failing:
		s.cfg.Log.Info("texts are kept on disk again")
	}
	s.failing = err != nil
}

// AddStats adds what is kept.
func (s *Store) AddStats(st *stages.Stats) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.States.Stored, st.States.Recalled, st.States.StoredDisk = s.count.stored, s.count.recalled, s.found.bytes
}

// Close ends the writing. What is still to be written is left out.
func (s *Store) Close() {
	if s == nil {
		return
	}
	s.mu.Lock() // what Keep has taken is in the queue
	s.stop()
	s.mu.Unlock()
	<-s.ended
}
