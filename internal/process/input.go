package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
)

// cancelReader is stdin: a Read that waits for a person or a slow pipe ends when ctx does. What is
// being read then is lost.
type cancelReader struct {
	ctx context.Context
	r   io.Reader
}

// NewCancelReader returns a reader of r that ends with ctx.
func NewCancelReader(ctx context.Context, r io.Reader) io.Reader { return cancelReader{ctx, r} }

func (c cancelReader) Read(p []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	type result struct {
		n   int
		err error
	}
	// The memory is the goroutine's own, which may outlive this call.
	buf, done := make([]byte, min(len(p), 64<<10)), make(chan result, 1)
	go func() {
		n, err := c.r.Read(buf)
		done <- result{n, err}
	}()
	select {
	case got := <-done:
		return copy(p, buf[:got.n]), got.err
	case <-c.ctx.Done():
		return 0, context.Cause(c.ctx)
	}
}

// ReadInput reads a whole file, or stdin for "-".
func ReadInput(inv *Invocation, file string) ([]byte, error) {
	if file == "-" {
		data, err := io.ReadAll(inv.Stdin)
		if err != nil {
			return nil, fmt.Errorf("reading stdin: %w", err)
		}
		return data, nil
	}
	return os.ReadFile(file)
}

// OpenRegular opens a regular file of size bytes.
func OpenRegular(path string) (f *os.File, size int64, err error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err == nil {
		f, err = os.Open(path)
	}
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// WithoutLineEnd returns the text of a file without its last line end.
func WithoutLineEnd(text string) string {
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
}
