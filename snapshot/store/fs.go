package store

import (
	"io"
	"time"
)

// FS is a folder as the store needs it. Names are those of files in it. Errors wrap fs.ErrNotExist,
// fs.ErrExist and the system's error numbers where they apply. It may be used by many goroutines.
type FS interface {
	// Path names the folder for people.
	Path() string
	// List returns the regular files.
	List() ([]FileInfo, error)
	// Create makes a file, which must not be there.
	Create(name string) (WriteFile, error)
	// Open opens a regular file.
	Open(name string) (ReadFile, error)
	// Rename gives a file another name, atomically replacing the file that has it.
	Rename(from, to string) error
	Remove(name string) error
	// Sync makes durable what was created, renamed and removed.
	Sync() error
	// TryLock locks a file, which it makes if necessary, for this call alone, until release or the
	// end of the process. It does not wait: the error is ErrLocked if any other call, in whatever
	// process, has the lock.
	TryLock(name string) (release func(), err error)
}

// WriteFile is a file that is being made.
type WriteFile interface {
	io.Writer
	io.ReaderAt
	// Sync makes the content durable.
	Sync() error
	io.Closer
}

// ReadFile is an open file, which stays what it was whatever happens to its name.
type ReadFile interface {
	io.ReaderAt
	Info() (FileInfo, error)
	// Touch sets the time of the last use to now, if the user may.
	Touch() error
	io.Closer
}

// FileInfo is what is known of a file without reading it.
type FileInfo struct {
	Name  string
	Bytes int64
	Used  time.Time // last written or touched
	ID    uint64    // unique among the files that exist at one time
}
