package netdelay

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Link is what a network is like.
type Link struct {
	Delay time.Duration // one way
	Rate  int64         // bits a second, each way; 0: no limit
}

// Proxy relays connections to one address over a Link.
type Proxy struct {
	link Link
	to   string
	l    net.Listener

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
	all    sync.WaitGroup
}

// New listens on a free port of this machine and relays who comes to an address, until Close.
func New(to string, link Link) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{link: link, to: to, l: l, open: make(map[net.Conn]bool)}
	p.all.Go(p.accept)
	return p, nil
}

// Addr returns where the proxy listens.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// Close ends all connections, and waits for what serves them.
func (p *Proxy) Close() error {
	err := p.l.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.open {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.all.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.relay(c) })
	}
}

// hold notes a connection, unless the proxy is closed.
func (p *Proxy) hold(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.open[c] = true
	}
	return !p.closed
}

func (p *Proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// relay serves one connection until either side ends it.
func (p *Proxy) relay(from net.Conn) {
	defer p.drop(from)
	to, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer p.drop(to)
	if !p.hold(from) || !p.hold(to) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.carry(to, from) })
	p.carry(from, to)
	both.Wait()
}

// carry carries one direction. When one ends so does the other.
func (p *Proxy) carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	way := newPipe(p.link)
	var sender sync.WaitGroup
	sender.Go(func() {
		defer to.Close()
		defer from.Close()
		way.deliver(to)
	})
	way.collect(from)
	sender.Wait()
}

// RoundTrip returns how long n bytes take to an address and back, in the middle of some rounds. The
// other side must send back what it gets, as Echo does.
func RoundTrip(addr string, n, rounds int) (time.Duration, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	b, took := make([]byte, n), make([]time.Duration, rounds)
	for i := range took {
		began := time.Now()
		if _, err := c.Write(b); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return 0, err
		}
		took[i] = time.Since(began)
	}
	return middle(took), nil
}

// Echo sends back what comes to l, until l is closed.
func Echo(l net.Listener) error {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			_, _ = io.Copy(c, struct{ io.Reader }{c}) // no splice: it waits for more
		}()
	}
}
