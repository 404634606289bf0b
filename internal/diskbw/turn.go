package diskbw

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// turn reads random records in a mode, depth of them at once, until the time is over. It returns
// how many it read, how long that took, and the summed time of all reads.
func (t *turns) turn(ctx context.Context, c Config, mode Mode, depth int) (reads int, took, waited time.Duration, err error) {
	order := t.random.Perm(len(t.records))
	if mode == Buffered {
		// Within the turn no record is read twice, so none comes from the cache.
		for i := range t.files[mode] {
			if err := forget(t.files[mode][i]); err != nil {
				return 0, 0, 0, fmt.Errorf("diskbw: %s: dropping cached pages: %w", c.Files[i], err)
			}
		}
	}
	var (
		next, done, ns atomic.Int64
		wg             sync.WaitGroup
		errs           = make([]error, depth)
	)
	began := time.Now()
	for w := range depth {
		wg.Go(func() {
			for first := true; first || time.Since(began) < c.Time; first = false {
				i := int(next.Add(1) - 1)
				if i >= len(order) || ctx.Err() != nil || errs[w] != nil {
					return
				}
				from := time.Now()
				errs[w] = t.read(t.records[order[i]], mode, t.pool.of(w), c.RecordBytes)
				ns.Add(int64(time.Since(from)))
				done.Add(1)
			}
		})
	}
	wg.Wait()
	took = time.Since(began)
	if ctx.Err() != nil {
		return 0, 0, 0, fmt.Errorf("diskbw: %w", context.Cause(ctx))
	}
	return int(done.Load()), took, time.Duration(ns.Load()), errors.Join(errs...)
}

// read reads a record. Direct reads begin and end at multiples of Align, so an unaligned record
// takes a little more.
func (t *turns) read(r record, mode Mode, buf []byte, bytes int) error {
	f := t.files[mode][r.file]
	from, to := r.offset, r.offset+int64(bytes)
	if mode == Direct {
		from, to = from/Align*Align, (to+Align-1)/Align*Align
	}
	return readFull(f, buf[:to-from], from, int(r.offset+int64(bytes)-from))
}

// readFull reads at least least bytes; the file may end between least and len(buf).
func readFull(f *os.File, buf []byte, at int64, least int) error {
	for got := 0; got < least; {
		n, err := unix.Pread(int(f.Fd()), buf[got:], at+int64(got))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("diskbw: reading %s at %d: %w", f.Name(), at, err)
		case n == 0:
			return fmt.Errorf("diskbw: reading %s at %d: %w", f.Name(), at, io.ErrUnexpectedEOF)
		}
		got += n
	}
	return nil
}

// buffers is aligned memory to read into, outside the Go heap.
type buffers struct {
	mapping []byte
	each    int
}

// newBuffers allocates n buffers for records of the given size and what alignment adds.
func newBuffers(n, bytes int) (*buffers, error) {
	each := (bytes + Align - 1 + Align) / Align * Align
	m, err := unix.Mmap(-1, 0, n*each, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("diskbw: cannot allocate buffers for %d reads of %d bytes: %w", n, bytes, err)
	}
	for i := 0; i < len(m); i += Align { // so that no turn pays for the first touch
		m[i] = 1
	}
	return &buffers{m, each}, nil
}

func (b *buffers) of(i int) []byte { return b.mapping[i*b.each : (i+1)*b.each] }

func (b *buffers) release() {
	if err := unix.Munmap(b.mapping); err != nil {
		panic(fmt.Sprintf("diskbw: cannot unmap the buffers: %v", err))
	}
}
