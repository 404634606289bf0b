package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/actors/remote/frame"
	"github.com/moeflux/moeflux-actor/actors/remote/group"
	"github.com/moeflux/moeflux-actor/actors/remote/secrets"
)

// members is the group of hosts that this one is in. It begins with the first host that this one
// joins or that joins this one; until then nothing listens for packets.
type members struct {
	mu    sync.Mutex
	at    net.Addr // where the host listens
	name  string   // the address at which others dial it
	group *group.Group
	ended bool
}

var (
	// errNoName reports a host whose address says nothing to others.
	errNoName = errors.New("it listens at every address of its machine; say at which one others dial it (--advertise)")
	errEnds   = errors.New("the host is about to end")
)

// listenTries is how many ports are tried, if any does, for one that is free for streams and
// packets.
const listenTries = 10

// listen returns what takes connections, and joins others if the host is to do so.
func (m *members) listen(h *Host, addr string) (l net.Listener, err error) {
	_, port, _ := net.SplitHostPort(addr)
	for try := 1; ; try++ {
		if l, err = net.Listen("tcp", addr); err != nil {
			return nil, err
		}
		if err = m.called(addr, l.Addr(), h.cfg.Advertise); err == nil && len(h.cfg.Join) > 0 {
			_, err = m.begin(h)
		}
		if err == nil {
			return l, nil
		}
		err = errors.Join(err, l.Close())
		if port != "0" || try == listenTries {
			return nil, err
		}
	}
}

// called takes note of how others call the host: by the name that its address has, and the port
// that it got.
func (m *members) called(addr string, at net.Addr, advertise string) error {
	if advertise != "" {
		if err := CheckAdvertise(addr, advertise); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, port, _ := net.SplitHostPort(at.String())
	if m.at, m.name = at, advertise; m.name == "" && nameIn(addr) != "" {
		m.name = net.JoinHostPort(nameIn(addr), port)
	}
	return nil
}

// nameIn returns the name or address in host:port; "" if it is every address of a machine.
func nameIn(addr string) string {
	name, _, _ := net.SplitHostPort(addr)
	if ip := net.ParseIP(name); ip != nil && ip.IsUnspecified() {
		return ""
	}
	return name
}

// CheckAdvertise reports a Config.Advertise that cannot be, for a host that listens at addr and is
// to join others.
func CheckAdvertise(addr, advertise string) error {
	if advertise != "" {
		return frame.CheckAddress(advertise)
	}
	if nameIn(addr) == "" {
		return errNoName
	}
	return nil
}

// begin returns the group, which begins if there is none yet.
func (m *members) begin(h *Host) (*group.Group, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.ended:
		return nil, errEnds
	case m.group != nil:
		return m.group, nil
	case m.name == "":
		return nil, errNoName
	}
	if err := h.cfg.Secrets.CheckGroup(m.at.String()); err != nil {
		return nil, err
	}
	key, _, err := h.cfg.Secrets.GroupKeys()
	if err != nil {
		return nil, err
	}
	packets, err := net.ListenPacket("udp", m.at.String())
	if err != nil {
		return nil, fmt.Errorf("hosts of a group also talk by UDP at the port of their address: %w", err)
	}
	m.group, err = group.New(group.Config{
		Name: m.name, Join: h.cfg.Join, Key: key, Packets: packets, Dial: h.dialMember, Changed: h.conns.grouped, Log: h.cfg.Logger,
	})
	if err != nil {
		return nil, errors.Join(err, packets.Close())
	}
	return m.group, nil
}

// leave ends the host's part in the group.
func (m *members) leave() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended = true; m.group == nil {
		return nil
	}
	return m.group.Leave()
}

// admit lets another host say what hosts of a group say to each other, if it has the same model and
// knows the token.
func (h *Host) admit(c net.Conn, f *frame.Frame) error {
	hello, err := f.Greeting()
	if err != nil {
		return err
	}
	_, proof, err := h.cfg.Secrets.GroupKeys()
	if err == nil {
		err = h.refusal(&hello, proof)
	}
	var g *group.Group
	if err == nil {
		g, err = h.members.begin(h)
	}
	if err != nil {
		_, _ = c.Write(frame.AppendReason(nil, frame.Refused, 0, err.Error()))
		return err
	}
	if _, err := c.Write(frame.AppendEmpty(nil, frame.Joined, 0)); err != nil {
		return err
	}
	_ = c.SetDeadline(time.Time{})
	g.Take(c)
	return nil
}

// dialMember returns a stream to another host that has taken this one for one of its group.
func (h *Host) dialMember(ctx context.Context, name, addr string) (c net.Conn, err error) {
	if c, err = new(net.Dialer).DialContext(ctx, "tcp", addr); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
			c = nil
		}
	}()
	cfg, err := h.cfg.Secrets.Member()
	if err != nil {
		return c, err
	}
	if cfg != nil {
		if cfg.ServerName, _, err = net.SplitHostPort(name); err != nil {
			return c, err
		}
		secure := tls.Client(c, cfg)
		if err := secure.HandshakeContext(ctx); err != nil {
			return c, secrets.HandshakeError(err)
		}
		c = secure
	}
	return c, h.askToJoin(c)
}

// askToJoin has another host take this one for one of its group.
func (h *Host) askToJoin(c net.Conn) error {
	_, proof, err := h.cfg.Secrets.GroupKeys()
	if err != nil {
		return err
	}
	if _, err := c.Write(frame.AppendHello(nil, frame.Join, &frame.Greeting{Version: frame.Version, Shape: h.shape, Fingerprint: h.print, Token: proof})); err != nil {
		return err
	}
	f, err := frame.NewReader(c).Next()
	switch {
	case err != nil:
		return secrets.Explain(err)
	case f.Kind == frame.Refused:
		return fmt.Errorf("refused: %q", f.Body)
	case f.Kind != frame.Joined:
		return frame.ErrKind
	}
	return nil
}
