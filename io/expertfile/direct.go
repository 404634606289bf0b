package expertfile

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// DirectAlign is the alignment of direct reads: their offset in the file, their length and their
// address in memory are multiples of it. It is the size of a page; no common disk or file system
// asks for more.
const DirectAlign = 4096

// DirectError says why reads of a model's files cannot bypass the page cache. Reads through it
// still work.
type DirectError struct {
	Path string // "" if the model is at fault, not a file
	Why  string
	Err  error // cause, if another error is one
}

func (e *DirectError) Error() string {
	if e.Path == "" {
		return "expertfile: no direct reads: " + e.Why
	}
	return fmt.Sprintf("expertfile: no direct reads of %s: %s", e.Path, e.Why)
}

func (e *DirectError) Unwrap() error { return e.Err }

// UseDirect makes ReadExpert bypass the page cache from now on. ReadExpert then fails for memory
// that does not begin at a multiple of DirectAlign. UseDirect must be called before the first
// ReadExpert. The error is a *DirectError if the length of records is not a multiple of DirectAlign
// (where records are files' own), or if a file system refuses; reads then go through the page
// cache, as before.
func (f *File) UseDirect() error {
	if f.spread != nil {
		return f.spreadDirect()
	}
	if f.layout.Bytes%DirectAlign != 0 {
		return &DirectError{Why: fmt.Sprintf("records are %d bytes long, which is not a multiple of %d", f.layout.Bytes, DirectAlign)}
	}
	for i, layer := range f.layers {
		l := f.files[layer]
		err := l.setDirect(true)
		if err == nil && i == 0 {
			err = l.tryDirect(f.layout.Bytes)
		}
		if err == nil {
			continue
		}
		for _, back := range f.layers[:i+1] {
			_ = f.files[back].setDirect(false) // refused where it was never set
		}
		return &DirectError{Path: l.path, Why: fmt.Sprintf("the file system refuses: %v", err), Err: err}
	}
	f.direct = true
	return nil
}

// Direct reports whether reads bypass the page cache.
func (f *File) Direct() bool { return f.direct }

// setDirect makes reads of the open file bypass the page cache or go through it. The descriptor
// stays the same, so that a file that was replaced since Open is not mixed with its successor.
func (l *layerFile) setDirect(on bool) (err error) {
	cerr := l.control(func(fd uintptr) { err = setDirect(fd, on) })
	if cerr != nil {
		return cerr
	}
	return err
}

// tryDirect reads one record: some file systems accept the flag and refuse the reads.
func (l *layerFile) tryDirect(record int) error {
	mem, err := unix.Mmap(-1, 0, record, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	defer unix.Munmap(mem)
	_, err = readFull(l.read, mem, 0, DirectAlign)
	return err
}
