package host

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moeflux/moeflux-actor/actors/remote/frame"
	"github.com/moeflux/moeflux-actor/actors/remote/secrets"
	"github.com/moeflux/moeflux-actor/actors/remote/wire"
)

// mostConns is how many connections a host has at once.
const mostConns = 64

// conns is the connections of a host.
type conns struct {
	mu      sync.Mutex
	open    map[*conn]bool
	serving sync.WaitGroup // goroutines of connections
	work    atomic.Int32   // asks under way
	closing bool
	said    map[string]bool // refusals that were logged
	members []string        // of the group, this host first; nil without one
}

// add takes a connection, unless there are too many or the host closes.
func (cs *conns) add(c *conn) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closing || len(cs.open) >= mostConns {
		return false
	}
	cs.open[c] = true
	cs.serving.Add(1)
	return true
}

func (cs *conns) remove(c *conn) {
	c.close()
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.open, c)
	cs.serving.Done()
}

func (cs *conns) closeAll() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.closing = true
	for c := range cs.open {
		c.close()
	}
}

// drain tells everybody to ask no more.
func (cs *conns) drain() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.closing = true
	for c := range cs.open {
		if c.engine {
			c.send(frame.AppendEmpty(nil, frame.Drain, 0))
		}
	}
}

// greeted notes that a connection is an engine's.
func (cs *conns) greeted(c *conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.engine = true
}

// watch tells an engine who is in the group, and goes on to do so.
func (cs *conns) watch(c *conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.watching = true
	c.send(frame.AppendGroup(nil, cs.members))
}

// grouped tells engines who is in the group now.
func (cs *conns) grouped(members []string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.members = members
	for c := range cs.open {
		if c.watching {
			c.send(frame.AppendGroup(nil, members))
		}
	}
}

// Listen returns what Serve takes connections from: by TLS, if the host has certificates. An
// address that other machines reach is refused without. The host begins to join others then
// (Config.Join).
func (h *Host) Listen(addr string) (net.Listener, error) {
	if err := h.cfg.Secrets.CheckAddr(addr); err != nil {
		return nil, err
	}
	secure, err := h.cfg.Secrets.Server()
	if err != nil {
		return nil, err
	}
	tcp, err := h.members.listen(h, addr)
	if err != nil {
		return nil, err
	}
	l := wire.Listener{Listener: tcp, Patience: writePatience}
	if secure == nil {
		return l, nil
	}
	return tls.NewListener(l, secure), nil
}

// Serve takes connections from l, which it closes, until Close is called or the host breaks. It
// returns nil after Close.
func (h *Host) Serve(l net.Listener) error {
	go func() {
		<-h.inbox.stopped
		_ = l.Close()
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			h.inbox.mu.Lock()
			defer h.inbox.mu.Unlock()
			if h.inbox.ended {
				return h.inbox.err
			}
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		x := newConn(h, c)
		if !h.conns.add(x) {
			_ = c.Close()
			continue
		}
		go func() {
			defer h.conns.remove(x)
			h.gone(x, x.serve())
		}()
	}
}

// mostSaid bounds what is remembered of refusals.
const mostSaid = 256

// gone logs the end of a connection. An engine that is refused dials again and again: why it is so
// is said once, until somebody is served.
func (h *Host) gone(c *conn, why error) {
	if why == nil {
		return
	}
	at := c.net.RemoteAddr().String()
	if c.known {
		h.cfg.Logger.Info("an engine has gone", "from", at, "why", why, "asks_of_old_placements", c.old)
	}
	from, _, _ := net.SplitHostPort(at)
	why = secrets.Explain(why)
	h.conns.mu.Lock()
	defer h.conns.mu.Unlock()
	if c.known || len(h.conns.said) >= mostSaid {
		clear(h.conns.said)
	}
	if key := from + " " + why.Error(); !c.known && !h.conns.said[key] {
		h.conns.said[key] = true
		level := slog.LevelWarn
		if errors.Is(why, io.EOF) { // it has thought better of it
			level = slog.LevelInfo
		}
		says := "an engine is not served"
		if c.joins {
			says = "a host may not join"
		}
		h.cfg.Logger.Log(context.Background(), level, says, "from", at, "why", why)
	}
}

// drainPause is how long engines have to hear that they should ask no more.
const drainPause = 50 * time.Millisecond

// Close ends the host: engines are told to ask no more, and hosts of the group that it goes; what
// they have asked is answered as long as ctx lasts, and everything is freed. The listener is the
// caller's to close first.
func (h *Host) Close(ctx context.Context) error {
	h.conns.drain()
	left := h.members.leave()
	for pause := true; (pause || h.conns.work.Load() > 0) && ctx.Err() == nil; pause = false {
		select {
		case <-time.After(drainPause): // the last answers are written, too
		case <-ctx.Done():
		}
	}
	h.conns.closeAll()
	h.conns.serving.Wait()
	return errors.Join(left, h.release())
}
