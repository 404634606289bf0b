package wire

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"
)

// pair returns both ends of a connection, the first of which is a Conn.
func pair(t *testing.T, patience time.Duration) (*Conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	// Buffers that are set do not grow: some kernels let them grow to more than the tests send.
	if err := errors.Join(in.(*net.TCPConn).SetReadBuffer(1<<16), out.(*net.TCPConn).SetWriteBuffer(1<<16)); err != nil {
		t.Fatal(err)
	}
	c, err := New(out.(*net.TCPConn), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); in.Close() })
	return c, in
}

// TestWrite sends far more than the kernel takes while nobody reads: no write waits, and all comes
// in order. A goroutine is there while something is left, and not after.
func TestWrite(t *testing.T) {
	c, in := pair(t, 10*time.Second)
	noise := rand.NewChaCha8([32]byte{1})
	r := rand.New(noise)
	before := runtime.NumGoroutine()
	for range 2 {
		var want []byte
		for range 200 {
			b := make([]byte, r.IntN(200_000))
			_, _ = noise.Read(b) // it never fails
			want = append(want, b...)
			if n, err := c.Write(b); n != len(b) || err != nil {
				t.Fatalf("wrote %d of %d bytes: %v", n, len(b), err)
			}
			clear(b) // the memory is the caller's again
		}
		c.mu.Lock()
		if c.rest == nil {
			t.Error("the kernel has taken all; the test shows nothing")
		}
		c.mu.Unlock()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(in, got); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("what came is not what was sent: %v", err)
		}
		for range 500 {
			if runtime.NumGoroutine() <= before {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if n := runtime.NumGoroutine(); n > before {
			t.Errorf("%d goroutines are left, there were %d", n, before)
		}
	}
}

// TestMany has many goroutines write: what each writes comes in one piece.
func TestMany(t *testing.T) {
	c, in := pair(t, 10*time.Second)
	const writers, rounds, size = 8, 50, 40_000
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for range rounds {
				if _, err := c.Write(bytes.Repeat([]byte{byte(w)}, size)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	got := make([]byte, size)
	for range writers * rounds {
		if _, err := io.ReadFull(in, got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, bytes.Repeat(got[:1], size)) {
			t.Fatal("writes are mixed")
		}
	}
	all.Wait()
}

// TestImpatience ends a connection whose other side takes nothing, and says so to whoever writes or
// reads.
func TestImpatience(t *testing.T) {
	c, _ := pair(t, 50*time.Millisecond)
	began := time.Now()
	for {
		if _, err := c.Write(make([]byte, 1<<20)); err != nil {
			break
		}
		if time.Sleep(5 * time.Millisecond); time.Since(began) > 5*time.Second {
			t.Fatal("writing goes on")
		}
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("reading says %v", err)
	}
}

// TestTaken waits for what was written, with TLS above or without, until it is read or the
// connection ends.
func TestTaken(t *testing.T) {
	c, in := pair(t, 10*time.Second)
	Taken(c) // nothing was written
	for _, end := range []func(){func() { _, _ = io.CopyN(io.Discard, in, 1<<20) }, func() { c.Close() }} {
		if _, err := c.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		taken := make(chan bool)
		go func() {
			Taken(tls.Client(c, new(tls.Config)))
			close(taken)
		}()
		select {
		case <-taken:
			t.Error("nobody has read anything")
		case <-time.After(20 * time.Millisecond):
		}
		end()
		select {
		case <-taken:
		case <-time.After(5 * time.Second):
			t.Fatal("all is read, or the connection has ended, and Taken waits")
		}
	}
}
