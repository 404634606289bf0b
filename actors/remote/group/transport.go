package group

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// packetBytes is the most bytes of a packet by UDP.
	packetBytes = 64 << 10
	// mostWaiting is how many packets, and how many streams, may wait for memberlist. Others are
	// dropped: what they say is said again.
	mostWaiting = 256
)

// transport is what memberlist sends and gets things by.
type transport struct {
	g       *Group
	packets chan *memberlist.Packet
	streams chan net.Conn
	reading sync.WaitGroup

	mu      sync.Mutex
	trouble map[string]error // by name: why a host was dialled in vain
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

func newTransport(g *Group) *transport {
	t := &transport{g: g, packets: make(chan *memberlist.Packet, mostWaiting), streams: make(chan net.Conn, mostWaiting), trouble: make(map[string]error)}
	t.reading.Go(t.read)
	return t
}

// read passes packets on until there is nothing to read from.
func (t *transport) read() {
	b := make([]byte, packetBytes)
	for {
		n, from, err := t.g.cfg.Packets.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n == 0 { // an earlier packet has found nobody
			continue
		}
		select {
		case t.packets <- &memberlist.Packet{Buf: append([]byte(nil), b[:n]...), From: from, Timestamp: time.Now()}:
		default:
		}
	}
}

// FinalAdvertiseAddr returns the address that others send to.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.g.own.IP, t.g.own.Port, nil
}

// WriteTo sends a packet.
func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return time.Time{}, err
	}
	_, err = t.g.cfg.Packets.WriteTo(b, to)
	return time.Now(), err
}

// WriteToAddress sends a packet.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	return t.WriteTo(b, a.Addr)
}

// PacketCh returns the packets that have come.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// DialTimeout returns a stream to a host.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr, Name: addr}, timeout)
}

// DialAddressTimeout returns a stream to a host.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(t.g.ctx, timeout)
	defer cancel()
	c, err := t.g.cfg.Dial(ctx, a.Name, a.Addr)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.trouble, a.Name)
	if err != nil && len(t.trouble) < mostWaiting {
		t.trouble[a.Name] = err
	}
	if err != nil {
		return nil, err
	}
	return t.stream(c), nil
}

// why returns why a host was dialled in vain, without what memberlist adds; err if it was not.
func (t *transport) why(name string, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.trouble[name]; x != nil {
		return x
	}
	return err
}

// StreamCh returns the streams that have come.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// stream is a connection that ends with the Group, and tells when it has ended.
type stream struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
	forget func() bool // has the connection not end with the Group
}

func (t *transport) stream(c net.Conn) *stream {
	return &stream{Conn: c, closed: make(chan struct{}), forget: context.AfterFunc(t.g.ctx, func() { _ = c.Close() })}
}

// Close ends the connection.
func (s *stream) Close() error {
	s.once.Do(func() {
		s.forget()
		close(s.closed)
	})
	return s.Conn.Close()
}

// take passes a stream on, and waits until it has ended.
func (t *transport) take(c net.Conn) {
	s := t.stream(c)
	defer s.Close()
	select {
	case t.streams <- s:
	default:
		return
	}
	select {
	case <-s.closed:
	case <-t.g.ctx.Done():
	}
}

// Shutdown ends the packets.
func (t *transport) Shutdown() error {
	err := t.g.cfg.Packets.Close()
	t.reading.Wait()
	return err
}
