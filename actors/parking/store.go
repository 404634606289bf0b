package parking

import (
	"context"
	"log/slog"
	"sync"

	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/stages"
)

// Image is a state in the device's memory, which is written or filled.
type Image interface {
	snapshot.Source
	snapshot.Target
}

// Config says what a store may use.
type Config struct {
	Shape  *snapshot.Shape
	Memory int64  // most bytes of host memory; 0 means none
	Dir    string // where it makes its folder; "" means no files
	// Image returns what stages.Park has as Memory.
	Image func(memory any) Image
	// Answer sends a StateParked or a StateReturned to the sequencer.
	Answer func(stages.Message)
	Log    *slog.Logger
}

// Store keeps parked states. Its methods may be called from many goroutines.
type Store struct {
	cfg    Config
	folder *folder // nil: no files

	// using is read-locked while a job uses an image; Close locks it, and then none is used.
	using   sync.RWMutex
	closed  bool
	running sync.WaitGroup

	mu      sync.Mutex // guards the rest
	entries map[stages.ParkID]*entry
	held    int64  // bytes of host memory, those of entries that are still to be written included
	onDisk  int64  // bytes in files
	puts    uint64 // so far
}

// Open makes a store. ctx bounds the waiting for another process that is opening the same place.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s := &Store{cfg: cfg, entries: make(map[stages.ParkID]*entry)}
	if cfg.Dir == "" {
		return s, nil
	}
	var err error
	s.folder, err = openFolder(ctx, cfg.Dir)
	return s, err
}

// Park does what the sequencer asks for. What may take time has a goroutine of its own.
func (s *Store) Park(p stages.Park) {
	s.using.RLock()
	defer s.using.RUnlock()
	if s.closed { // nobody wants an answer any more
		return
	}
	switch p.Do {
	case stages.ParkWrite:
		s.running.Go(func() { s.answer(&stages.StateParked{ID: p.ID, Err: s.write(p)}) })
	case stages.ParkRead:
		s.running.Go(func() { s.answer(&stages.StateReturned{ID: p.ID, Err: s.read(p)}) })
	case stages.ParkForget: // its room is free for who asks next
		useless := s.forget(p.ID)
		s.running.Go(func() { s.remove(useless) })
	}
}

// answer tells the sequencer, as long as the store is open.
func (s *Store) answer(m stages.Message) {
	s.using.RLock()
	defer s.using.RUnlock()
	if !s.closed {
		s.cfg.Answer(m)
	}
}

// AddStats adds where parked states lie.
func (s *Store) AddStats(st *stages.Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.States.ParkedHost, st.States.ParkedDisk = s.held, s.onDisk
}

// Close gives up all that is parked, and returns when no job is left. From its beginning on no
// image is used, and nothing is answered.
func (s *Store) Close() error {
	s.using.Lock()
	s.closed = true
	s.using.Unlock()
	s.running.Wait()
	for id := range s.entries {
		s.remove(s.forget(id))
	}
	if s.folder == nil {
		return nil
	}
	return s.folder.close()
}
