package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// errReaderGone is the error of a write to stdout whose reader has closed it.
var errReaderGone = errors.New("the reader of stdout is gone")

// resultWriter is stdout. It tells apart that nobody reads any more. It may be used by many
// goroutines.
type resultWriter struct {
	mu      sync.Mutex
	w       io.Writer
	midLine bool // the last byte written is not a line feed
}

func (r *resultWriter) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.write(p)
}

func (r *resultWriter) write(p []byte) (int, error) {
	n, err := r.w.Write(p)
	if n > 0 {
		r.midLine = p[n-1] != '\n'
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return n, errReaderGone
	}
	if err != nil {
		return n, &stdoutError{err}
	}
	return n, nil
}

// stdoutError reports that a result could not be written.
type stdoutError struct{ err error }

func (e *stdoutError) Error() string { return fmt.Sprintf("the result cannot be written: %v", e.err) }
func (e *stdoutError) Unwrap() error { return e.err }

// checkOutput reports a file that cannot be written before the work for it begins: its folder does
// not exist, or it is a folder or a device, which a finished file must not replace.
func checkOutput(path string) error {
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s cannot be written: it is not a regular file", path)
	}
	return nil
}

// lines returns a writer to the same place each of whose writes begins on a line of its own.
func (r *resultWriter) lines() io.Writer { return lineWriter{r} }

type lineWriter struct{ r *resultWriter }

func (l lineWriter) Write(p []byte) (int, error) {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	if l.r.midLine {
		if _, err := l.r.write([]byte{'\n'}); err != nil {
			return 0, err
		}
	}
	return l.r.write(p)
}

// print prints a result: as a line of JSON, or as text for people.
func (inv *invocation) print(asJSON bool, v any, text func() string) error {
	if asJSON {
		return writeJSON(inv.stdout, v)
	}
	_, err := io.WriteString(inv.stdout, text())
	return err
}

// writeJSON prints one value as a line of JSON. Text stays readable: nothing is escaped for HTML.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
