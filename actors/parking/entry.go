package parking

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/stages"
)

// entry is a parked state. Store.mu guards all but mem and file of one that is in use: those stay
// what they are.
type entry struct {
	id    stages.ParkID
	size  int64
	mem   block // nil: it is in the file
	file  *file // nil: it is in host memory
	users int   // jobs that read it
	gone  bool  // it is forgotten
	since uint64
}

// block is host memory outside the Go heap, so that the garbage collector does not keep as much
// again in reserve.
type block []byte

func newBlock(size int64) (block, error) {
	b, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("host memory for a parked state of %d bytes: %w", size, err)
	}
	return b, nil
}

// put makes an entry known.
func (s *Store) put(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.puts++
	e.since = s.puts
	s.entries[e.id] = e
	if e.file != nil {
		s.onDisk += e.size
	}
}

// take returns an entry to be read.
func (s *Store) take(id stages.ParkID) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[id]
	if e == nil {
		return nil, fmt.Errorf("there is no parked state %d", id)
	}
	e.users++
	return e, nil
}

// giveBack ends the use of an entry.
func (s *Store) giveBack(e *entry) {
	s.mu.Lock()
	e.users--
	useless := s.settle(e)
	s.mu.Unlock()
	s.remove(useless)
}

// forget gives an entry up, as soon as nobody uses it.
func (s *Store) forget(id stages.ParkID) {
	s.mu.Lock()
	var useless *file
	if e := s.entries[id]; e != nil {
		delete(s.entries, id)
		e.gone = true
		useless = s.settle(e)
	}
	s.mu.Unlock()
	s.remove(useless)
}

// remove removes a file, if there is one. s.mu is not held: a disk may take its time.
func (s *Store) remove(f *file) {
	if f == nil {
		return
	}
	if err := f.remove(); err != nil {
		s.cfg.Log.Warn("the file of a parked state stays until the engine is closed", "error", err)
	}
}

// settle frees what an entry that is not in use does not need, and returns its file if that is to
// be removed. s.mu is held.
func (s *Store) settle(e *entry) (useless *file) {
	if e.users > 0 {
		return nil
	}
	if e.gone || e.file != nil {
		s.unmap(e)
	}
	if e.gone && e.file != nil {
		s.onDisk -= e.size
		useless, e.file = e.file, nil
	}
	return useless
}

// unmap gives an entry's host memory back. s.mu is held.
func (s *Store) unmap(e *entry) {
	if e.mem == nil {
		return
	}
	if err := unix.Munmap(e.mem); err != nil {
		s.cfg.Log.Warn("host memory of a parked state stays mapped", "error", err)
	}
	e.mem = nil
	s.held -= e.size
}

// reserve makes room in host memory, by moving to files what has been there longest.
func (s *Store) reserve(size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.held+size > s.cfg.Memory {
		e := s.oldest()
		if size > s.cfg.Memory || s.folder == nil || e == nil {
			return &stages.ParkFullError{Need: size, Used: s.held, Max: s.cfg.Memory}
		}
		if err := s.spill(e); err != nil {
			return err
		}
	}
	s.held += size
	return nil
}

// release takes back what was reserved for an entry that was not put.
func (s *Store) release(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.mem == nil {
		s.held -= e.size
	}
	s.unmap(e)
}

// oldest returns the entry that has been in host memory longest and is not in use.
func (s *Store) oldest() (oldest *entry) {
	for _, e := range s.entries {
		if e.mem != nil && e.file == nil && e.users == 0 && (oldest == nil || e.since < oldest.since) {
			oldest = e
		}
	}
	return oldest
}

// spill moves an entry to a file. s.mu is held, but not while the disk works.
func (s *Store) spill(e *entry) error {
	e.users++
	s.mu.Unlock()
	f, err := s.folder.write(e.id, func(w io.Writer) error {
		_, err := w.Write(e.mem)
		return err
	})
	s.mu.Lock()
	e.users--
	if err == nil {
		e.file = f
		s.onDisk += e.size
	}
	if useless := s.settle(e); useless != nil {
		s.mu.Unlock()
		s.remove(useless)
		s.mu.Lock()
	}
	return err
}
