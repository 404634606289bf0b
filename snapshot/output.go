package snapshot

import (
	"fmt"
	"io"
)

// output gathers bytes into large writes and takes their checksums. There are two buffers: while
// one is being filled, the other is being written, so that reading a state takes next to no time
// where there is a processor to spare. The writer is called by one goroutine at a time, and no
// longer once close has returned.
type output struct {
	buf    []byte // what is not yet handed over
	summed bool   // whether checksums are wanted
	sums   sums

	full chan []byte    // to the goroutine that writes
	free chan writeDone // and back
}

// writeDone gives a buffer back and tells how the writing has gone so far.
type writeDone struct {
	buf     []byte
	written int64
	err     error
}

func newOutput(w io.Writer, bufferBytes int, summed bool) *output {
	out := &output{buf: make([]byte, 0, bufferBytes), summed: summed, full: make(chan []byte), free: make(chan writeDone, 2)}
	out.free <- writeDone{buf: make([]byte, 0, bufferBytes)}
	go write(w, out.full, out.free)
	return out
}

// write writes what comes until something fails. It still takes the rest, and gives all buffers
// back.
func write(w io.Writer, full <-chan []byte, free chan<- writeDone) {
	var done writeDone
	for p := range full {
		if done.err == nil {
			n, err := w.Write(p)
			if err == nil && n < len(p) {
				err = io.ErrShortWrite
			}
			if done.written += int64(n); err != nil {
				done.err = fmt.Errorf("write at %d: %w", done.written, err)
			}
		}
		done.buf = p[:0]
		free <- done
	}
	close(free)
}

// reserve makes room for n bytes, at most a buffer's size.
func (out *output) reserve(n int) error {
	if len(out.buf)+n <= cap(out.buf) {
		return nil
	}
	return out.flush()
}

// flush hands the buffer over and waits for the other one. The error is that of an earlier write.
func (out *output) flush() error {
	if out.summed {
		out.sums.add(out.buf)
	}
	out.full <- out.buf
	done := <-out.free
	out.buf = done.buf
	return done.err
}

// close waits until all is written. It returns the number of bytes, and err or what failed in
// writing.
func (out *output) close(err error) (int64, error) {
	close(out.full)
	var last writeDone
	for done := range out.free {
		last = done
	}
	if err == nil {
		err = last.err
	}
	return last.written, err
}
