package host

import (
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/moeflux/moeflux-actor/actors/remote/frame"
	"github.com/moeflux/moeflux-actor/actors/remote/secrets"
	"github.com/moeflux/moeflux-actor/actors/remote/wire"
	"github.com/moeflux/moeflux-actor/stages"
)

const (
	// helloPatience is how long a stranger may take to say who it is.
	helloPatience = 2 * time.Second
	// silence is how long an engine may say nothing; it pings far more often.
	silence = 10 * time.Second
	// writePatience is how long an engine may not take what it is told.
	writePatience = 10 * time.Second
)

// conn is one engine's connection, or that of another host of the group.
type conn struct {
	h     *Host
	net   net.Conn
	known bool         // it has shown who it is, and is served
	joins bool         // it is a host, and wants to be in this one's group
	asks  atomic.Int32 // under way
	epoch uint32       // of the placement that the engine has told of last
	old   int          // asks of earlier ones

	// with conns.mu held
	engine   bool // it is an engine's, which knows frames
	watching bool // the engine wants to know of the group
}

func newConn(h *Host, c net.Conn) *conn { return &conn{h: h, net: c} }

// send has a frame sent. It does not wait, and the frame's memory is the caller's again.
func (c *conn) send(f []byte) { _, _ = c.net.Write(f) } // an error ends the connection: serve tells

// close ends the connection. What it has asked is computed and told to nobody.
func (c *conn) close() { _ = c.net.Close() }

// serve reads what an engine says until one side ends the connection, and returns why. It returns
// nil when a stream of another host has ended.
func (c *conn) serve() error {
	r := frame.NewReader(c.net)
	_ = c.net.SetDeadline(time.Now().Add(helloPatience))
	f, err := r.Next()
	if err != nil {
		return err
	}
	secure, byTLS := c.net.(*tls.Conn)
	if member := byTLS && secrets.IsMember(secure); byTLS && member != (f.Kind == frame.Join) {
		return frame.ErrKind // who shows no certificate must not ask
	}
	if c.joins = f.Kind == frame.Join; c.joins {
		return c.h.admit(c.net, &f)
	}
	if err := c.greet(&f); err != nil {
		return err
	}
	c.known = true
	r.Trust()
	return c.listen(r)
}

// listen does what an engine says that has greeted.
func (c *conn) listen(r *frame.Reader) error {
	for {
		_ = c.net.SetReadDeadline(time.Now().Add(silence))
		f, err := r.Next()
		if err != nil {
			return err
		}
		switch f.Kind {
		case frame.Ping:
			n, err := f.Back()
			if err != nil {
				return err
			}
			if n > 0 { // who wants much takes it before there is more
				wire.Taken(c.net)
			}
			c.send(frame.AppendPong(nil, f.ID, n))
		case frame.Ask:
			q, err := f.Question(c.h.shape)
			if err == nil && !slices.Contains(c.h.files.Experts.Layers(), q.Layer) {
				err = fmt.Errorf("%w: layer %d has no experts", frame.ErrContent, q.Layer)
			}
			if err != nil {
				return err
			}
			if q.Epoch < c.epoch {
				c.refuseOld(f.ID, q.Epoch)
				continue
			}
			if c.asks.Add(1) > asks {
				return fmt.Errorf("an engine has more than %d asks under way", asks)
			}
			c.h.conns.work.Add(1)
			c.h.put(&job{conn: c, ask: f.ID, question: q, arrived: time.Now()})
		case frame.Share:
			if err := c.share(&f); err != nil {
				return err
			}
		case frame.Watch:
			c.h.conns.watch(c)
		default:
			return frame.ErrKind
		}
	}
}

// share takes note of what the engine says is this host's own, and has it read ahead.
func (c *conn) share(f *frame.Frame) error {
	p, err := f.Placed(c.h.shape)
	if err != nil {
		return err
	}
	layers := c.h.files.Experts.Layers()
	for _, key := range p.Keys {
		if !slices.Contains(layers, int(key)/c.h.shape.Experts) {
			return fmt.Errorf("%w: a share with an expert of layer %d, which has none", frame.ErrContent, int(key)/c.h.shape.Experts)
		}
	}
	if p.Epoch < c.epoch {
		return fmt.Errorf("%w: a share of placement %d after that of %d", frame.ErrContent, p.Epoch, c.epoch)
	}
	c.epoch = p.Epoch
	c.h.cfg.Logger.Info("an engine has placed experts here", "placement", p.Epoch, "experts", len(p.Keys))
	c.h.put(&stages.WarmSlots{Keys: p.Keys})
	return nil
}

// refuseOld refuses an ask by a placement that does not hold any more. No engine sends one.
func (c *conn) refuseOld(ask uint64, epoch uint32) {
	if c.old++; c.old == 1 {
		c.h.cfg.Logger.Warn("an engine asks by an old placement; is it a recording that somebody plays back?", "from", c.net.RemoteAddr().String(), "placement", epoch, "present", c.epoch)
	}
	c.send(frame.AppendReason(nil, frame.Failed, ask, fmt.Sprintf("the ask is by placement %d, and the host has %d", epoch, c.epoch)))
}

// greet hears from a stranger who it is, and says what the host has room for, or why it does not
// serve.
func (c *conn) greet(f *frame.Frame) error {
	g, err := f.Greeting()
	if err != nil {
		return err
	}
	if err := c.h.refusal(&g, c.h.token); err != nil {
		_, _ = c.net.Write(frame.AppendReason(nil, frame.Refused, 0, err.Error()))
		return err
	}
	c.h.conns.greeted(c)
	_, err = c.net.Write(frame.AppendWelcome(nil, c.h.Room()))
	_ = c.net.SetDeadline(time.Time{})
	return err
}

// refusal says why an engine or a host is not served; nil if it is. Who does not know the token
// learns nothing of the model.
func (h *Host) refusal(g *frame.Greeting, token [32]byte) error {
	switch {
	case g.Version != frame.Version:
		return fmt.Errorf("the host speaks version %d, and the other side version %d; run the same version of the program on both", frame.Version, g.Version)
	case subtle.ConstantTimeCompare(g.Token[:], token[:]) == 0:
		return fmt.Errorf("the token is wrong; give both sides the same one (--token-file of hosts, --hosts-token of engines)")
	case g.Fingerprint != [32]byte(h.print) || g.Shape != h.shape:
		return fmt.Errorf("the host has another model, or other bits of it; give both sides the same files")
	}
	return nil
}
