package store

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/snapshot"
)

// Options say how a store is kept. The zero value is ready for use.
type Options struct {
	// MaxBytes is how much all sessions together may take; 0 means any number of bytes. When a
	// session is put, those that were used least recently are removed until all fit, never the new
	// one. While a session is being written, both it and the one it replaces take room.
	MaxBytes int64
}

// Store is a folder of sessions. It may be used by many goroutines, and the folder by many
// processes.
type Store struct {
	fs  FS
	max int64

	mu    sync.Mutex
	known map[string]known // by the name of the file
}

// Entry is what a folder knows of a session.
type Entry struct {
	Name        string
	Bytes       int64
	Used        time.Time // when it was last put or got
	Positions   int
	Fingerprint snapshot.Fingerprint // of the model

	// Err is why the file is not a session: an *Error whose Kind is ErrDamaged, or that of a failed
	// read; Positions and Fingerprint are zero then. nil means that it is one. The body is not read
	// for this: its checksum is checked when it is loaded.
	Err error

	file FileInfo
}

// Open opens a folder of sessions and removes what killed writers left behind. There is nothing to
// close.
func Open(ctx context.Context, folder FS, o Options) (*Store, error) {
	s := &Store{fs: folder, max: o.MaxBytes, known: map[string]known{}}
	files, err := folder.List()
	if err != nil {
		return nil, s.fail("open", "", ErrFolder, err)
	}
	if !slices.ContainsFunc(files, func(f FileInfo) bool { return isWriting(f.Name) }) {
		return s, nil
	}
	release, err := s.lock(ctx)
	if err == nil {
		defer release()
		err = s.sweep()
	}
	if err != nil {
		return nil, s.fail("open", "", nil, err)
	}
	return s, nil
}

// lock waits for the lock on the folder.
func (s *Store) lock(ctx context.Context) (release func(), err error) {
	const most = 50 * time.Millisecond
	for wait := time.Millisecond; ; wait = min(2*wait, most) {
		release, err := s.fs.TryLock(lockName)
		if !errors.Is(err, ErrLocked) {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// Hold claims a session for whoever goes on with it and saves it later, until release or until the
// process is gone, so that no other process does the same meanwhile and one of the two is lost. It
// does not wait: the Kind of the error is ErrHeld if another call has it. Get, Longest and Put take
// no notice. The claim is a lock on an empty file beside the session's, which stays.
func (s *Store) Hold(name string) (release func(), err error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	release, err = s.fs.TryLock(fileOf(name) + holdSuffix)
	switch {
	case errors.Is(err, ErrLocked):
		return nil, s.fail("go on with", name, ErrHeld, nil)
	case err != nil:
		return nil, s.fail("go on with", name, ErrFolder, err)
	}
	return release, nil
}

// sweep removes temporary files whose writers are gone. The folder is locked, so none is made
// meanwhile.
func (s *Store) sweep() error {
	files, err := s.fs.List()
	if err != nil {
		return err
	}
	for _, f := range files {
		if !isWriting(f.Name) {
			continue
		}
		release, err := s.fs.TryLock(f.Name)
		if errors.Is(err, ErrLocked) {
			continue
		}
		if err != nil {
			return err
		}
		err = s.fs.Remove(f.Name)
		release()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// sessions returns the files of sessions, most recently used first.
func (s *Store) sessions() ([]Entry, error) {
	files, err := s.fs.List()
	if err != nil {
		return nil, err
	}
	var all []Entry
	for _, f := range files {
		if name, ok := sessionOf(f.Name); ok {
			all = append(all, Entry{Name: name, Bytes: f.Bytes, Used: f.Used, file: f})
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Name, b.Name)) })
	return all, nil
}

// List returns all sessions, most recently used first, including those that cannot be read.
func (s *Store) List() ([]Entry, error) {
	all, err := s.recall()
	if err != nil {
		return nil, s.fail("list the sessions", "", nil, err)
	}
	entries := make([]Entry, len(all))
	for i := range all {
		entries[i] = all[i].Entry
	}
	return entries, nil
}

// Session is an open session: what its file held when it was opened, whatever has happened to the
// folder since. Its content is read by ReadAt, as Bytes bytes.
type Session struct {
	Entry
	Seal *snapshot.Seal // with the token ids; shared and read-only

	content ReadFile
}

// ReadAt reads the snapshot.
func (s *Session) ReadAt(p []byte, off int64) (int, error) { return s.content.ReadAt(p, off) }

// Close closes the file.
func (s *Session) Close() error { return s.content.Close() }

// Get opens a session, which counts as use. The caller closes it. The Kind of the error is ErrName,
// ErrNone, or ErrDamaged if the file is not a session.
func (s *Store) Get(name string) (*Session, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	got, err := s.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.fail("get", name, ErrNone, nil)
	}
	if err != nil {
		return nil, s.fail("get", name, nil, err)
	}
	_ = got.content.Touch() // without permission to write, the order of removal stays
	return got, nil
}

// Peek is Get, and does not count as use.
func (s *Store) Peek(name string) (*Session, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	got, err := s.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.fail("look at", name, ErrNone, nil)
	}
	if err != nil {
		return nil, s.fail("look at", name, nil, err)
	}
	return got, nil
}

// Path returns where the file of a session lies.
func (s *Store) Path(name string) string { return filepath.Join(s.fs.Path(), fileOf(name)) }

// open opens a session and reads its seal.
func (s *Store) open(name string) (*Session, error) {
	f, err := s.fs.Open(fileOf(name))
	if err != nil {
		return nil, err
	}
	got := &Session{content: f}
	info, err := f.Info()
	if err == nil {
		got.Entry = Entry{Name: name, Bytes: info.Bytes, Used: info.Used, file: info}
		got.Seal, err = sealOf(f, info.Bytes)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	got.Positions, got.Fingerprint = len(got.Seal.Tokens), got.Seal.Fingerprint
	return got, nil
}

// Remove removes a session. The Kind of the error is ErrName or ErrNone, or ErrUnsettled if it may
// be back after a loss of power.
func (s *Store) Remove(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	release, err := s.lock(ctx)
	if err != nil {
		return s.fail("remove", name, nil, err)
	}
	defer release()
	switch err := s.fs.Remove(fileOf(name)); {
	case errors.Is(err, fs.ErrNotExist):
		return s.fail("remove", name, ErrNone, nil)
	case err != nil:
		return s.fail("remove", name, nil, err)
	}
	if err := s.fs.Sync(); err != nil {
		return s.fail("remove", name, ErrUnsettled, err)
	}
	return nil
}
