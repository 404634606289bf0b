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
	Hosts       []string // their addresses, host:port
	Shape       frame.Shape
	Groups      []int    // [layers] as frame.Question.Group
	Fingerprint [32]byte // of the model
	Token       [32]byte // of a secret of both; zero for none
	TLS         *tls.Config
	// Patience is how long a host may be silent before its asks go another way. 0 means
	// DefaultPatience.
	Patience time.Duration
	Probe    *Probe
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
	links []*link
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
	for i, addr := range cfg.Hosts {
		l := &link{c: c, host: i, addr: addr}
		c.links = append(c.links, l)
	}
	return c
}

// Dial begins to dial the hosts, and goes on until Close. Expert-IO hears of each that may be
// asked.
func (c *Client) Dial() {
	for _, l := range c.links {
		c.ended.Go(l.run)
	}
}

// Hosts returns how many hosts there are; none of a nil Client.
func (c *Client) Hosts() int {
	if c == nil {
		return 0
	}
	return len(c.links)
}

// Addrs returns the addresses of the hosts; none of a nil Client.
func (c *Client) Addrs() []string {
	if c == nil {
		return nil
	}
	return c.cfg.Hosts
}

// AskPicks returns the most picks of an ask; 0 of a nil Client.
func (c *Client) AskPicks() int {
	if c == nil {
		return 0
	}
	return c.cfg.Shape.AskPicks()
}

// Ask sends an ask to its host. It does not wait.
func (c *Client) Ask(a *stages.Ask) { c.links[a.Host].ask(a) }

// Share tells a host what is its own. It does not wait.
func (c *Client) Share(s *stages.HostShare) { c.links[s.Host].share(s) }

// Close ends all connections. Nothing is sent to stages afterwards.
func (c *Client) Close() {
	c.close()
	for _, l := range c.links {
		l.stop()
	}
	c.ended.Wait()
}

// AddStats adds the figures of hosts.
func (c *Client) AddStats(s *stages.Stats) {
	for _, l := range c.links {
		s.Hosts = append(s.Hosts, l.stats())
	}
}
