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

// forget gives an entry up, as soon as nobody uses it. Its room is free at once, for what is parked
// next; what is returned is to be removed.
func (s *Store) forget(id stages.ParkID) (useless remains) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[id]; e != nil {
		delete(s.entries, id)
		e.gone = true
		useless = s.settle(e)
	}
	return useless
}

// remains is what an entry has that nobody needs any more.
type remains struct {
	mem  block
	file *file
}

// remove frees what remains. s.mu is not held: a disk may take its time.
func (s *Store) remove(r remains) {
	if r.mem != nil {
		if err := unix.Munmap(r.mem); err != nil {
			s.cfg.Log.Warn("host memory of a parked state stays mapped", "error", err)
		}
	}
	if r.file != nil {
		if err := r.file.remove(); err != nil {
			s.cfg.Log.Warn("the file of a parked state stays until the engine is closed", "error", err)
		}
	}
}

// settle takes from an entry that is not in use what it does not need. s.mu is held.
func (s *Store) settle(e *entry) (useless remains) {
	if e.users > 0 {
		return useless
	}
	if e.mem != nil && (e.gone || e.file != nil) {
		s.held -= e.size
		useless.mem, e.mem = e.mem, nil
	}
	if e.file != nil && e.gone {
		s.onDisk -= e.size
		useless.file, e.file = e.file, nil
	}
	return useless
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
	s.held -= e.size
	s.mu.Unlock()
	s.remove(remains{mem: e.mem})
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
	useless := s.settle(e)
	s.mu.Unlock()
	s.remove(useless)
	s.mu.Lock()
	return err
}
