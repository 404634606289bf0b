package synth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/internal/durable"
)

const (
	chunkBytes  = 8 << 20 // of one write
	directAlign = 4096    // of offset, length and memory of a direct write
	maxWorkers  = 16
)

// writer computes the bytes of files on several goroutines and writes them, bypassing the page
// cache if the file system allows it: dirty pages of a large model would push everything else out
// of memory and reach the disk no sooner.
type writer struct {
	dir      string
	total    int64
	progress func(Progress)
	workers  int // 0 means GOMAXPROCS, at most maxWorkers

	mu    sync.Mutex // guards the rest
	files []*image   // not started yet
	begun []*target
	open  *target // the file being handed out
	next  int64   // its first byte not handed out
	done  int64   // bytes written to all files
	err   error   // the first
}

// target is a file being written.
type target struct {
	image  *image
	path   string
	file   *os.File
	direct atomic.Bool
	left   atomic.Int64 // bytes still to write
}

// write writes the files, in their order.
func (w *writer) write(ctx context.Context, files []*image) error {
	w.files = files
	n := w.workers
	if n == 0 {
		n = min(runtime.GOMAXPROCS(0), maxWorkers)
	}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { w.work(ctx) })
	}
	wg.Wait()
	for _, t := range w.begun {
		if t.left.Load() > 0 {
			t.file.Close() // after an error: the file is removed with its directory
		}
	}
	return w.err
}

// work computes and writes chunks until none are left or a worker has failed.
func (w *writer) work(ctx context.Context) {
	buf := aligned(chunkBytes)
	for {
		t, offset, err := w.take(ctx)
		if t == nil || err != nil {
			w.fail(err)
			return
		}
		n := min(chunkBytes, t.image.size()-offset)
		t.image.render(buf[:n], offset)
		if s := t.image.sums; s != nil {
			s.add(buf[:n], offset)
		}
		err = t.write(buf, n, offset)
		if err == nil && t.left.Add(-n) == 0 {
			err = t.finish()
		}
		if err != nil {
			w.fail(fmt.Errorf("synth: write %s: %w", t.path, err))
			return
		}
		w.wrote(n)
	}
}

// aligned returns memory for direct writes.
func aligned(n int) []byte {
	b := make([]byte, n+directAlign)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % directAlign)
	return b[skip : skip+n : skip+n]
}

// take returns the next chunk; nil when there is none.
func (w *writer) take(ctx context.Context) (*target, int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return nil, 0, fmt.Errorf("synth: interrupted; nothing is left behind: %w", context.Cause(ctx))
	}
	if w.err != nil {
		return nil, 0, nil
	}
	if w.open == nil {
		if len(w.files) == 0 {
			return nil, 0, nil
		}
		t, err := openTarget(w.dir, w.files[0])
		if err != nil {
			return nil, 0, fmt.Errorf("synth: %w", err)
		}
		w.open, w.next, w.files, w.begun = t, 0, w.files[1:], append(w.begun, t)
	}
	t, offset := w.open, w.next
	if w.next += chunkBytes; w.next >= t.image.size() {
		w.open = nil // the worker that writes its last chunk closes it
	}
	return t, offset, nil
}

// openTarget creates a file of its full size.
func openTarget(dir string, f *image) (*target, error) {
	t := &target{image: f, path: filepath.Join(dir, filepath.FromSlash(f.name))}
	t.left.Store(f.size())
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	var err error
	if directFlag != 0 {
		t.file, err = os.OpenFile(t.path, flags|directFlag, durable.Shared.File())
		t.direct.Store(err == nil)
	}
	if t.file == nil { // some file systems refuse direct writes at once
		t.file, err = os.OpenFile(t.path, flags, durable.Shared.File())
	}
	if err != nil {
		return nil, err
	}
	if err := reserve(t.file, f.size()); err != nil {
		return nil, errors.Join(err, t.file.Close())
	}
	return t, nil
}

// write writes n bytes of buf at offset; buf is the worker's whole buffer.
func (t *target) write(buf []byte, n, offset int64) error {
	if t.direct.Load() {
		// finish cuts the last chunk's padding off
		padded := (n + directAlign - 1) / directAlign * directAlign
		clear(buf[n:padded])
		_, err := t.file.WriteAt(buf[:padded], offset)
		if !errors.Is(err, unix.EINVAL) {
			return err
		}
		// The file system took the flag but not the write.
		if err := clearDirect(t.file); err != nil {
			return err
		}
		t.direct.Store(false)
	}
	_, err := t.file.WriteAt(buf[:n], offset)
	return err
}

// finish closes a file whose bytes are all written.
func (t *target) finish() error {
	err := t.file.Truncate(t.image.size())
	if err == nil {
		err = t.file.Sync()
	}
	return errors.Join(err, t.file.Close())
}

// wrote counts bytes and reports progress.
func (w *writer) wrote(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done += n
	if w.progress != nil {
		w.progress(Progress{Done: w.done, Total: w.total})
	}
}

// fail keeps the first error.
func (w *writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}
