package remote

import (
	"context"
	"crypto/tls"
	"log/slog"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/actors/remote/frame"
	"github.com/moeflux/moeflux-actor/stages"
)

// DefaultPatience is how long a host may be silent.
const DefaultPatience = 250 * time.Millisecond

// Config is what a Client needs.
type Config struct {
	Hosts []string // their addresses, host:port
	// Most is the most hosts if those of Hosts are asked which others are in their group, and 0 if
	// not. Check reports an address from a host that must not be dialled.
	Most        int
	Check       func(addr string) error
	Shape       frame.Shape
	Groups      []int    // [layers] as frame.Question.Group
	Fingerprint [32]byte // of the model
	Token       [32]byte // of a secret of both; zero for none
	TLS         *tls.Config
	// Patience is how long a host may be silent before its asks go another way. 0 means
	// DefaultPatience.
	Patience time.Duration
	Probe    *Probe
	// Sums has hosts answer with a sum for each row, and not with the outputs of all its picks.
	// That changes bits.
	Sums bool
	// Send sends a message to a stage, from any goroutine.
	Send func(stages.StageID, stages.Message)
	Log  *slog.Logger
}

// RowBytes returns how many bytes a row has on its way to a host: the most of any layer's.
func (c *Config) RowBytes() (most int) {
	for _, group := range c.Groups {
		most = max(most, frame.RowBytes(c.Shape.Hidden, group))
	}
	return most
}

// Client is all expert hosts of an engine.
type Client struct {
	cfg   Config
	found found
	// done ends with Close, and with it what the links wait for.
	done  context.Context
	close context.CancelFunc
	ended sync.WaitGroup
}

// New returns a Client that is not connected to anybody.
func New(cfg Config) *Client {
	if cfg.Patience == 0 {
		cfg.Patience = DefaultPatience
	}
	c := &Client{cfg: cfg}
	c.done, c.close = context.WithCancel(context.Background())
	c.found.init(c)
	return c
}

// Dial begins to dial the hosts, and goes on until Close. Expert-IO hears of each that may be
// asked.
func (c *Client) Dial() { c.found.dial() }

// Await waits until each host has answered or was found to be out of reach, or until ctx ends.
// Expert-IO was told then of those that may be asked. Await returns the addresses of the others.
func (c *Client) Await(ctx context.Context) (silent []string) {
	for {
		links := c.found.untried()
		if len(links) == 0 {
			return nil
		}
		select {
		case <-links[0].tried.Done():
		case <-ctx.Done():
			for _, l := range links {
				silent = append(silent, l.addr)
			}
			return silent
		}
	}
}

// Hosts returns how many hosts there can be; none of a nil Client.
func (c *Client) Hosts() int {
	if c == nil {
		return 0
	}
	return len(c.found.places)
}

// Sums reports whether hosts answer with sums; false of a nil Client.
func (c *Client) Sums() bool { return c != nil && c.cfg.Sums }

// Addr returns the address of a host: of one that has gone until its place is another's, and ""
// where there was none. A nil Client has none.
func (c *Client) Addr(host int) string {
	if host < c.Hosts() {
		if l := c.link(host); l != nil {
			return l.addr
		}
	}
	return ""
}

// Addrs returns the addresses of all hosts, by their places.
func (c *Client) Addrs() (all []string) {
	for host := range c.Hosts() {
		if addr := c.Addr(host); addr != "" { // places are taken in order
			all = append(all, addr)
		}
	}
	return all
}

// AskPicks returns the most picks of an ask; 0 of a nil Client.
func (c *Client) AskPicks() int {
	if c == nil {
		return 0
	}
	return c.cfg.Shape.AskPicks()
}

// link returns the host that has a place, or had it last; nil before the first. Expert-IO may still
// name one that has gone: it is told that nobody is connected, or another host computes the same.
func (c *Client) link(place int) *link { return c.found.places[place].Load() }

// Ask sends an ask to its host. It does not wait.
func (c *Client) Ask(a *stages.Ask) { c.link(a.Host).ask(a) }

// Share tells a host what is its own. It does not wait.
func (c *Client) Share(s *stages.HostShare) { c.link(s.Host).share(s) }

// Close ends all connections. Nothing is sent to stages afterwards.
func (c *Client) Close() {
	c.close()
	c.found.stop()
	c.ended.Wait()
}

// AddStats adds the figures of hosts.
func (c *Client) AddStats(s *stages.Stats) {
	for i := range c.found.places {
		if l := c.link(i); l != nil {
			s.Hosts = append(s.Hosts, l.stats())
		}
	}
}
