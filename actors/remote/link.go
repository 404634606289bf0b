package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/actors/remote/frame"
	"github.com/moeflux/moeflux-actor/actors/remote/secrets"
	"github.com/moeflux/moeflux-actor/actors/remote/wire"
	"github.com/moeflux/moeflux-actor/stages"
)

const (
	dialPatience  = 2 * time.Second        // for a connection, and for each answer to a greeting
	probePatience = 30 * time.Second       // for the first answer, which the host may have to read
	redial        = 200 * time.Millisecond // from try to try
	pingsWithin   = 4                      // pings in the time of patience
)

// errSilent ends the connection of a host that does not answer pings.
var errSilent = errors.New("it has fallen silent")

// RefusedError says why a host does not serve.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return "refused: " + e.Reason }

// link is one host.
type link struct {
	c    *Client
	host int
	addr string
	// done ends when the host is not to be dialled any more, and with the Client's.
	done context.Context
	end  context.CancelFunc
	said string // the last trouble that was logged
	room frame.Room
	net  network
	ours []byte // memory for asks; of whoever runs the stages

	place place // of found
	// tried ends when the host has answered, or could not be reached, for the first time. With a
	// group it has also told who is in it.
	tried context.Context
	try   context.CancelFunc

	mu      sync.Mutex
	conn    net.Conn // nil unless connected
	up      bool     // expert-IO may ask
	heard   time.Time
	taking  bool // what has come is being passed on: nothing else is heard meanwhile
	pending map[uint64]*pending
	figures stages.HostStats
	usual   usual
	telling sync.WaitGroup // who tells that an answer is late
}

// run dials the host again and again.
func (l *link) run() {
	for {
		err := l.connect()
		if l.done.Err() != nil {
			return
		}
		l.try()
		if l.said != err.Error() {
			l.said = err.Error()
			l.c.cfg.Log.Warn("an expert host is not used", "host", l.addr, "why", err)
		}
		select {
		case <-l.done.Done():
			return
		case <-time.After(redial):
		}
	}
}

// stop ends the dialling of the host, and its connection, if there is one.
func (l *link) stop() {
	l.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

// connect dials the host, and serves the connection until it ends. It returns why.
func (l *link) connect() error {
	ctx, cancel := context.WithTimeout(l.done, dialPatience)
	defer cancel()
	conn, err := l.dial(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.conn = conn
	l.mu.Unlock()
	if l.done.Err() != nil { // stop may not have seen the connection
		_ = conn.Close()
	}
	r := frame.NewReader(conn)
	if err = l.greet(conn, r); err == nil {
		err = l.measure(conn, r)
	}
	if err == nil {
		err = l.serve(conn, r)
	}
	l.down(conn)
	return err
}

// measure measures the network to a host that has greeted.
func (l *link) measure(conn net.Conn, r *frame.Reader) (err error) {
	_ = conn.SetDeadline(time.Now().Add(probePatience))
	if l.net, err = greeted.network(conn, r); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// changed says what may be asked of the host.
func (l *link) changed() *stages.HostChanged {
	hidden := l.c.cfg.Shape.Hidden
	return &stages.HostChanged{
		Host: l.host, Experts: l.room.Experts, Asks: l.room.Asks, DelayNS: float64(l.net.roundTrip), RowNS: l.net.rowNS(l.c.cfg.RowBytes(), 4*hidden),
	}
}

// dial returns a connection to the host, by TLS if that is wished.
func (l *link) dial(ctx context.Context) (net.Conn, error) {
	tcp, err := new(net.Dialer).DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return nil, err
	}
	conn, err := wire.New(tcp.(*net.TCPConn), max(l.c.cfg.Patience, time.Second))
	if err != nil || l.c.cfg.TLS == nil {
		return conn, err
	}
	cfg := l.c.cfg.TLS.Clone()
	if cfg.ServerName == "" {
		if cfg.ServerName, _, err = net.SplitHostPort(l.addr); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(secrets.HandshakeError(err), conn.Close())
	}
	return secure, nil
}

// greet says who asks, and has the host show that it computes the same bits.
func (l *link) greet(conn net.Conn, r *frame.Reader) error {
	cfg := &l.c.cfg
	_ = conn.SetDeadline(time.Now().Add(dialPatience))
	if _, err := conn.Write(frame.AppendHello(nil, frame.Hello, &frame.Greeting{Version: frame.Version, Shape: cfg.Shape, Fingerprint: cfg.Fingerprint, Token: cfg.Token})); err != nil {
		return err
	}
	f, err := r.Next()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("it ended the connection without a word; TLS is for both sides or for none: %w", err)
	}
	if err != nil { // the host may look at our certificate after the handshake
		return secrets.Explain(err)
	}
	if f.Kind == frame.Refused {
		return &RefusedError{fmt.Sprintf("%q", f.Body)}
	}
	if l.room, err = f.Room(); err != nil {
		return err
	}
	r.Trust()
	if cfg.Probe != nil {
		_ = conn.SetDeadline(time.Now().Add(probePatience))
		if err := cfg.Probe.compare(conn, r, cfg.Shape.Hidden); err != nil {
			return err
		}
	}
	return conn.SetDeadline(time.Time{})
}

// serve asks, and passes on answers, until the connection ends.
func (l *link) serve(conn net.Conn, r *frame.Reader) error {
	l.mu.Lock()
	l.pending, l.up = make(map[uint64]*pending), true
	l.mu.Unlock()
	ended := make(chan struct{})
	var others sync.WaitGroup
	defer others.Wait()
	defer close(ended)
	l.said = ""
	l.c.cfg.Log.Info("an expert host is used", "host", l.addr, "experts", l.room.Experts, "round_trip", l.net.roundTrip, "out_MB_s", math.Round(l.net.out/1e6), "in_MB_s", math.Round(l.net.in/1e6))
	l.c.cfg.Send(stages.ExpertIO, l.changed())
	l.hear(false) // stages may have taken their time
	others.Go(func() { l.watch(conn, ended) })
	if l.c.cfg.Most > 0 {
		_, _ = conn.Write(frame.AppendEmpty(nil, frame.Watch, 0))
	} else {
		l.try()
	}
	for {
		f, err := r.Next()
		if err == nil {
			l.hear(true)
			err = l.take(r, &f)
			l.hear(false)
		}
		if err != nil {
			_ = conn.Close()
			if since := l.quiet(); since > l.c.cfg.Patience {
				return errSilent
			}
			return err
		}
	}
}

// hear notes that something has come, and whether it is being passed on. Stages run meanwhile, and
// may wait for a device that compiles.
func (l *link) hear(taking bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard, l.taking = time.Now(), taking
}

// quiet returns for how long nothing has come, as far as anybody has listened.
func (l *link) quiet() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taking {
		return 0
	}
	return time.Since(l.heard)
}

// listens reports whether what comes is heard.
func (l *link) listens() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.taking
}

// watch pings the host, and ends the connection if nothing comes back, and asks that take too long.
func (l *link) watch(conn net.Conn, ended chan struct{}) {
	t := time.NewTicker(l.c.cfg.Patience / pingsWithin)
	defer t.Stop()
	for {
		select {
		case <-ended:
			return
		case <-t.C:
		}
		if l.quiet() > l.c.cfg.Patience {
			_ = conn.Close()
			return
		}
		_, _ = conn.Write(frame.AppendEmpty(nil, frame.Ping, 0))
		if l.listens() {
			l.endSlow()
		}
	}
}
