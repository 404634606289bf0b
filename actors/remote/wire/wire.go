// Package wire is a connection whose writes do not wait, for both ends of what an engine and an
// expert host say to each other. Whoever has a frame to send, the goroutine that runs the stages or
// the device's, writes it itself: no other goroutine has to wake up for it, which takes longer than
// the network does.
package wire

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// Conn is a connection of TCP. What the kernel does not take at once is copied, and written by a
// goroutine that lives until the kernel has taken all; nothing bounds that but what the two sides
// allow each other to have under way. TLS lies above it, so that it is as quick.
type Conn struct {
	net.Conn
	raw      syscall.RawConn
	patience time.Duration

	mu   sync.Mutex
	rest []byte    // that a goroutine is to write; nil if there is none
	err  error     // that ended writing
	idle sync.Cond // told when rest becomes nil
}

// errGone says that nothing can be written any more.
var errGone = errors.New("wire: the connection has ended")

// New returns a Conn of a connection. It ends when the other side takes nothing for longer than
// patience.
func New(c *net.TCPConn, patience time.Duration) (*Conn, error) {
	raw, err := c.SyscallConn()
	w := &Conn{Conn: c, raw: raw, patience: patience}
	w.idle.L = &w.mu
	return w, err
}

// Taken waits until the kernel has taken all that was written, or the connection has ended. c is a
// Conn, or TLS above one.
func Taken(c net.Conn) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if w, ok := c.(*Conn); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		for w.rest != nil {
			w.idle.Wait()
		}
	}
}

// Listener makes each connection that it takes a Conn.
type Listener struct {
	net.Listener // of TCP
	Patience     time.Duration
}

// Accept waits for a connection.
func (l Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return New(c.(*net.TCPConn), l.Patience)
}

// Write sends b, and does not wait. An error says that the connection has ended.
func (c *Conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	if c.rest != nil {
		c.rest = append(c.rest, b...)
		return len(b), nil
	}
	n, err := c.try(b)
	if err != nil {
		c.end(err)
		return n, err
	}
	if n < len(b) {
		c.rest = append(make([]byte, 0, len(b)-n), b[n:]...)
		go c.flush()
	}
	return len(b), nil
}

// try gives the kernel as much as it takes.
func (c *Conn) try(b []byte) (n int, err error) {
	failed := c.raw.Write(func(fd uintptr) bool {
		for n < len(b) && err == nil {
			var k int
			if k, err = syscall.Write(int(fd), b[n:]); k > 0 {
				n += k
			}
			if err == syscall.EINTR {
				err = nil
			}
		}
		return true // never wait
	})
	if err == syscall.EAGAIN {
		err = nil
	}
	return n, errors.Join(failed, err)
}

// flush writes the rest, and what is added to it meanwhile.
func (c *Conn) flush() {
	for {
		c.mu.Lock()
		b := c.rest
		if len(b) == 0 || c.err != nil {
			c.rest = nil
			c.idle.Broadcast()
			_ = c.Conn.SetWriteDeadline(time.Time{})
			c.mu.Unlock()
			return
		}
		c.rest = b[len(b):] // not nil: there is a goroutine
		c.mu.Unlock()
		_ = c.Conn.SetWriteDeadline(time.Now().Add(c.patience))
		if _, err := c.Conn.Write(b); err != nil {
			c.mu.Lock()
			c.end(err)
			c.mu.Unlock()
		}
	}
}

// end ends the connection. The caller holds c.mu.
func (c *Conn) end(err error) {
	if c.err == nil {
		c.err = err
		_ = c.Conn.Close()
	}
}

// Close ends the connection. What was not written is lost.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil
	}
	c.err = errGone
	return c.Conn.Close()
}
