package group

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// probeEach is how often a host pings another, and probeWithin how long that may take. A host
	// that was killed is out of the list after a second or two. Whoever is only busy has time to
	// say so, and engines do not drop a host with which they are connected.
	probeEach, probeWithin = 200 * time.Millisecond, 100 * time.Millisecond
	gossipEach             = 50 * time.Millisecond
	// wholeEach is how often two hosts compare their lists.
	wholeEach = 5 * time.Second
	// streamWithin is how long a stream to another host may take.
	streamWithin = 2 * time.Second
	// joinEach is how often a host that should be there is tried.
	joinEach = 500 * time.Millisecond
	// leaveWithin is how long the others may take to hear that a host leaves.
	leaveWithin = 300 * time.Millisecond
)

// Config is what a Group needs.
type Config struct {
	// Name is the address, host:port, at which others dial this host.
	Name string
	// Join are hosts of the group. Those that are not there yet, or not any more, are tried again.
	Join []string
	// Key encrypts what hosts tell each other, by AES-256. nil means that nothing is encrypted.
	Key []byte
	// Packets is what packets come by, at the port of Name; the Group closes it.
	Packets net.PacketConn
	// Dial returns a stream to another host, by its name and the address that the name stands for,
	// once that host has taken it for one of the group.
	Dial func(ctx context.Context, name, addr string) (net.Conn, error)
	// Changed is told who is there: this host first, then the others, sorted. It is called by one
	// goroutine, first before New returns.
	Changed func(names []string)
	Log     *slog.Logger
}

// Group is a host's part in a group.
type Group struct {
	cfg     Config
	own     *net.TCPAddr
	list    *memberlist.Memberlist
	to      *transport
	changed chan struct{} // holds one if somebody came or went
	said    map[string]string
	ctx     context.Context
	end     context.CancelFunc
	ended   sync.WaitGroup

	mu    sync.Mutex
	there map[string]string // the addresses, IP:port, of all who are there, by their names
}

// New begins a group of one host, and joins it with others as soon as they can be reached.
func New(cfg Config) (*Group, error) {
	own, err := net.ResolveTCPAddr("tcp", cfg.Name)
	if err != nil {
		return nil, err
	}
	g := &Group{cfg: cfg, own: own, changed: make(chan struct{}, 1), said: make(map[string]string), there: make(map[string]string)}
	g.ctx, g.end = context.WithCancel(context.Background())
	g.to = newTransport(g)
	conf := memberlist.DefaultLANConfig()
	conf.Name, conf.SecretKey, conf.Transport, conf.Events = cfg.Name, cfg.Key, g.to, events{g}
	conf.Logger = log.New(logLines{cfg.Log}, "", 0)
	conf.ProbeInterval, conf.ProbeTimeout, conf.GossipInterval = probeEach, probeWithin, gossipEach
	conf.PushPullInterval, conf.TCPTimeout, conf.DeadNodeReclaimTime = wholeEach, streamWithin, wholeEach
	conf.EnableCompression = false
	if g.list, err = memberlist.Create(conf); err != nil {
		g.end()
		return nil, fmt.Errorf("a group of expert hosts: %w", err)
	}
	g.tell()
	g.ended.Go(g.tellChanges)
	if len(cfg.Join) > 0 {
		g.ended.Go(g.joinAll)
	}
	return g, nil
}

// Take hands over a stream that another host of the group has dialled. It returns when the stream
// has ended.
func (g *Group) Take(c net.Conn) { g.to.take(c) }

// Leave tells the others that this host goes, and ends its part.
func (g *Group) Leave() error {
	g.end()
	g.ended.Wait()
	if err := g.list.Leave(leaveWithin); err != nil { // they find out
		g.cfg.Log.Debug("leaving the group of hosts", "error", err)
	}
	return g.list.Shutdown()
}

// tellChanges tells of who is there whenever that has changed.
func (g *Group) tellChanges() {
	for {
		select {
		case <-g.changed:
			g.tell()
		case <-g.ctx.Done():
			return
		}
	}
}

func (g *Group) tell() {
	names := []string{g.cfg.Name}
	g.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(g.there)) {
		if name != g.cfg.Name {
			names = append(names, name)
		}
	}
	g.mu.Unlock()
	g.cfg.Changed(names)
}

// joinAll joins the hosts that should be there and are not, again and again.
func (g *Group) joinAll() {
	t := time.NewTicker(joinEach)
	defer t.Stop()
	for {
		for _, name := range g.cfg.Join {
			g.join(name)
		}
		select {
		case <-t.C:
		case <-g.ctx.Done():
			return
		}
	}
}

// join joins a host, unless it is there.
func (g *Group) join(name string) {
	addr, err := net.ResolveTCPAddr("tcp", name)
	if err == nil && g.has(addr) {
		delete(g.said, name)
		return
	}
	if err == nil {
		if _, err = g.list.Join([]string{name + "/" + addr.String()}); err != nil {
			err = g.to.why(name, err)
		}
	}
	if err == nil || g.ctx.Err() != nil || g.said[name] == err.Error() {
		return
	}
	g.said[name] = err.Error()
	g.cfg.Log.Warn("an expert host cannot be joined yet", "host", name, "why", err)
}

// has reports whether a host is there.
func (g *Group) has(addr *net.TCPAddr) bool {
	if addr.Port == g.own.Port && addr.IP.Equal(g.own.IP) {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, there := range g.there {
		if there == addr.String() {
			return true
		}
	}
	return false
}

// events is told by memberlist that somebody has come or gone. A Node is memberlist's again when it
// has been told.
type events struct{ g *Group }

func (e events) NotifyJoin(n *memberlist.Node)   { e.g.note(n, true) }
func (e events) NotifyUpdate(n *memberlist.Node) { e.g.note(n, true) }
func (e events) NotifyLeave(n *memberlist.Node)  { e.g.note(n, false) }

// note takes note of who is there.
func (g *Group) note(n *memberlist.Node, there bool) {
	g.mu.Lock()
	if delete(g.there, n.Name); there {
		g.there[n.Name] = (&net.TCPAddr{IP: n.Addr, Port: int(n.Port)}).String()
	}
	g.mu.Unlock()
	select {
	case g.changed <- struct{}{}:
	default: // it will be told
	}
}

// logLines gets the lines that memberlist logs.
type logLines struct{ log *slog.Logger }

func (l logLines) Write(line []byte) (int, error) {
	l.log.Debug("group of hosts", "says", string(bytes.TrimSpace(line)))
	return len(line), nil
}
