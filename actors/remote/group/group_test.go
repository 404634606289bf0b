package group

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// member is a host of a group, with a network that can be cut.
type member struct {
	t      *testing.T
	name   string
	group  *Group
	listen net.Listener
	takes  sync.WaitGroup

	mu    sync.Mutex
	cut   bool
	sent  []byte // all packets
	names []string
}

// cutPackets is the packets of a member.
type cutPackets struct {
	net.PacketConn
	m *member
}

func (p cutPackets) WriteTo(b []byte, to net.Addr) (int, error) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.m.sent = append(p.m.sent, b...); p.m.cut {
		return len(b), nil
	}
	return p.PacketConn.WriteTo(b, to)
}

func (p cutPackets) ReadFrom(b []byte) (n int, from net.Addr, err error) {
	if n, from, err = p.PacketConn.ReadFrom(b); p.m.isCut() {
		n = 0
	}
	return n, from, err
}

var errCut = errors.New("the cable is cut")

func newMember(t *testing.T, key []byte, join ...string) *member {
	t.Helper()
	m := &member{t: t}
	var err error
	if m.listen, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	m.name = m.listen.Addr().String()
	packets, err := net.ListenPacket("udp", m.name)
	if err != nil {
		t.Fatal(err)
	}
	m.group, err = New(Config{
		Name: m.name, Join: join, Key: key, Packets: cutPackets{packets, m}, Log: slog.New(slog.DiscardHandler),
		Dial: func(ctx context.Context, _, addr string) (net.Conn, error) {
			if m.isCut() {
				return nil, errCut
			}
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		},
		Changed: func(names []string) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.names = names
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.takes.Go(func() {
		for {
			c, err := m.listen.Accept()
			if err != nil {
				return
			}
			if m.isCut() {
				c.Close()
				continue
			}
			m.takes.Go(func() { m.group.Take(c) })
		}
	})
	t.Cleanup(func() {
		if err := m.group.Leave(); err != nil {
			t.Error(err)
		}
		m.listen.Close()
		m.takes.Wait()
	})
	return m
}

// sees waits until a member knows of these and no others.
func (m *member) sees(what string, others ...*member) {
	m.t.Helper()
	var want []string
	for _, o := range others {
		want = append(want, o.name)
	}
	slices.Sort(want)
	want = append([]string{m.name}, want...)
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		m.mu.Lock()
		got := m.names
		m.mu.Unlock()
		if slices.Equal(got, want) {
			m.t.Logf("%s: after %v", what, time.Since(began).Round(time.Millisecond))
			return
		}
		if time.Since(began) > 20*time.Second {
			m.t.Fatalf("%s: %s sees %v, want %v", what, m.name, got, want)
		}
	}
}

func (m *member) isCut() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cut
}

func (m *member) setCut(cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut = cut
}

// TestSplit joins three hosts, the last by the second. When the third's network is cut, each side
// takes the other out, and when it is whole again so is the group. Nothing that they send is
// readable, and one that has another key is seen by nobody.
func TestSplit(t *testing.T) {
	key := bytes.Repeat([]byte{1}, 32)
	first := newMember(t, key)
	second := newMember(t, key, "127.0.0.1:1", first.name)
	third := newMember(t, key, first.name, second.name)
	all := []*member{first, second, third}
	first.sees("the first sees all", second, third)
	second.sees("the second sees all", first, third)
	third.sees("the third sees all", first, second)
	stranger := newMember(t, bytes.Repeat([]byte{2}, 32), first.name)
	third.setCut(true)
	first.sees("the first has lost the third", second)
	third.sees("the third is alone")
	third.setCut(false)
	first.sees("the first has the third again", second, third)
	third.sees("the third has all again", first, second)
	stranger.sees("the stranger is alone")
	for _, m := range all {
		m.mu.Lock()
		if len(m.sent) == 0 || bytes.Contains(m.sent, []byte("127.0.0.1:")) {
			t.Errorf("a host has sent %d bytes of packets, which can be read", len(m.sent))
		}
		m.mu.Unlock()
	}
}

// TestReadable has hosts without a key: what TestSplit looks for in packets is in theirs.
func TestReadable(t *testing.T) {
	first := newMember(t, nil)
	second := newMember(t, nil, first.name)
	first.sees("the first sees the second", second)
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		second.mu.Lock()
		readable := bytes.Contains(second.sent, []byte("127.0.0.1:"))
		second.mu.Unlock()
		if readable {
			return
		}
		if time.Since(began) > 10*time.Second {
			t.Fatal("no name is in the packets")
		}
	}
}
