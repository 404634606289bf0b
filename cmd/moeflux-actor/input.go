package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

// cancelReader is stdin: a Read that waits for a person or a slow pipe ends when ctx does. What is
// being read then is lost.
type cancelReader struct {
	ctx context.Context
	r   io.Reader
}

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

// readInput reads a whole file, or stdin for "-".
func readInput(inv *invocation, file string) ([]byte, error) {
	if file == "-" {
		data, err := io.ReadAll(inv.stdin)
		if err != nil {
			return nil, fmt.Errorf("reading stdin: %w", err)
		}
		return data, nil
	}
	return os.ReadFile(file)
}

// openRegular opens a regular file of size bytes.
func openRegular(path string) (f *os.File, size int64, err error) {
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
