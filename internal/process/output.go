package process

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

// ErrReaderGone is the error of a write to stdout whose reader has closed it.
var ErrReaderGone = errors.New("the reader of stdout is gone")

// Results is stdout. It tells apart that nobody reads any more. Many goroutines may use it.
type Results struct {
	mu      sync.Mutex
	W       io.Writer // where it goes
	midLine bool      // the last byte written is not a line feed
}

func (r *Results) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.write(p)
}

func (r *Results) write(p []byte) (int, error) {
	n, err := r.W.Write(p)
	if n > 0 {
		r.midLine = p[n-1] != '\n'
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return n, ErrReaderGone
	}
	if err != nil {
		return n, &StdoutError{err}
	}
	return n, nil
}

// StdoutError reports that a result could not be written.
type StdoutError struct{ err error }

func (e *StdoutError) Error() string { return fmt.Sprintf("the result cannot be written: %v", e.err) }
func (e *StdoutError) Unwrap() error { return e.err }

// CheckOutput reports a file that cannot be written before the work for it begins: its folder does
// not exist, or it is a folder or a device, which a finished file must not replace.
func CheckOutput(path string) error {
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s cannot be written: it is not a regular file", path)
	}
	return nil
}

// Lines returns a writer to the same place each of whose writes begins on a line of its own.
func (r *Results) Lines() io.Writer { return lineWriter{r} }

type lineWriter struct{ r *Results }

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

// Print prints a result: as a line of JSON, or as text for people.
func (inv *Invocation) Print(asJSON bool, v any, text func() string) error {
	if asJSON {
		return WriteJSON(inv.Stdout, v)
	}
	_, err := io.WriteString(inv.Stdout, text())
	return err
}

// WriteJSON prints one value as a line of JSON. Text stays readable: nothing is escaped for HTML.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
