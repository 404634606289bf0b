package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/net/netutil"
)

// Listening says how a Server listens.
type Listening struct {
	// Addr is host:port; port 0 picks one.
	Addr string
	// Listener is a socket that is open already, in place of Addr.
	Listener net.Listener
	// Anyone lets a server without keys listen where others than this machine reach it.
	Anyone bool
	// CertFile and KeyFile are those of TLS, in PEM; both or none.
	CertFile, KeyFile string
	// Connections is how many there may be at once; 0 means 4096. More wait until one ends.
	Connections int
	// Drain is how long requests under way may take when the server stops.
	Drain time.Duration
	// Told is called once with the URL, when the server listens.
	Told func(url string)
}

// The times and sizes of connections. Answers take as long as they take.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	lastTime   = time.Second
	maxHeader  = 64 << 10

	defaultConnections = 4096
)

// Listen serves until ctx ends, then drains: requests under way may finish, for as long as
// Listening.Drain, and streams that have not are ended with an error. The error is nil after that.
func (s *Server) Listen(ctx context.Context, c Listening) error {
	l, err := s.listen(ctx, &c)
	if err != nil {
		return err
	}
	hs := &http.Server{
		Handler: s, ReadHeaderTimeout: min(headerTime, s.o.Patience), IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.o.Logger.Handler(), slog.LevelDebug),
	}
	scheme, failed := "http", make(chan error, 1)
	if c.CertFile != "" {
		scheme = "https"
		go func() { failed <- hs.ServeTLS(l, c.CertFile, c.KeyFile) }()
	} else {
		go func() { failed <- hs.Serve(l) }()
	}
	if c.Told != nil {
		c.Told(scheme + "://" + l.Addr().String())
	}
	select {
	case err := <-failed:
		return fmt.Errorf("the server cannot listen: %w", err)
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Drain)
	defer cancel()
	s.Drain(patience)
	// The last bytes of the last answers are still to be sent.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
	defer cancel()
	if err := hs.Shutdown(last); err != nil {
		_ = hs.Close()
	}
	return nil
}

// listen opens the port, unless others than this machine would come in without a key.
func (s *Server) listen(ctx context.Context, c *Listening) (net.Listener, error) {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, errors.New("TLS needs a certificate and its key")
	}
	if c.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile); err != nil {
			return nil, fmt.Errorf("the certificate cannot be used: %w", err)
		}
	}
	l, err := c.Listener, error(nil)
	if l == nil {
		if l, err = new(net.ListenConfig).Listen(ctx, network(c.Addr), c.Addr); err != nil {
			return nil, err
		}
	}
	addr, err := netip.ParseAddrPort(l.Addr().String())
	if !c.Anyone && len(s.keys.All()) == 0 && (err != nil || !addr.Addr().IsLoopback()) {
		return nil, errors.Join(fmt.Errorf("other machines can reach %s, and there are no keys: give some, listen on 127.0.0.1, or let anyone in (open to anyone)", l.Addr()), l.Close())
	}
	return netutil.LimitListener(l, cmp.Or(c.Connections, defaultConnections)), nil
}

// network returns what to listen on at an address: at 0.0.0.0 it is IPv4 alone, where "tcp" would
// be all addresses of both kinds.
func network(addr string) string {
	if a, err := netip.ParseAddrPort(addr); err == nil && a.Addr().Is4() {
		return "tcp4"
	}
	return "tcp"
}
