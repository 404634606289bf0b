package remote

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moeflux/moeflux-actor/stages"
)

// found is which hosts an engine asks: those of Config.Hosts and, if Config.Most says so, those
// that these tell of. Each has a place, by whose number expert-IO names it. A host that is no
// longer in any group keeps its place until its connection has ended. As long as no host tells of a
// group, all keep their places: this machine's own network may be cut.
type found struct {
	c *Client
	// places have the host that is there or was there last. They are set with mu held.
	places []atomic.Pointer[link]

	mu     sync.Mutex
	closed bool
	told   map[string]bool // trouble that was logged
	// names is what a host calls itself, by the address that is dialled. So a host that is named in
	// another way than its group does has one place.
	names map[string]string
}

// place is what found knows of a link. It is read and written with found.mu held.
type place struct {
	connected bool      // it has told of its group, and its connection has not ended
	group     []string  // what it told last, itself first
	leaving   bool      // it gives up its place
	left      time.Time // when it has done so; zero before
}

// mostTold bounds what is remembered of trouble.
const mostTold = 256

func (f *found) init(c *Client) {
	f.c, f.told, f.names = c, make(map[string]bool), make(map[string]string)
	f.places = make([]atomic.Pointer[link], max(len(c.cfg.Hosts), c.cfg.Most))
	for i, addr := range c.cfg.Hosts {
		f.places[i].Store(c.newLink(i, addr))
	}
}

func (c *Client) newLink(host int, addr string) *link {
	l := &link{c: c, host: host, addr: addr}
	l.done, l.end = context.WithCancel(c.done)
	l.tried, l.try = context.WithCancel(l.done)
	return l
}

// dial begins with the hosts that are named.
func (f *found) dial() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.places {
		if l := f.places[i].Load(); l != nil {
			f.start(l)
		}
	}
}

// start has a host dialled until it gives up its place.
func (f *found) start(l *link) {
	f.c.ended.Go(func() {
		l.run()
		if f.c.done.Err() != nil {
			return
		}
		f.c.cfg.Log.Info("an expert host has left its group and is no longer dialled", "host", l.addr)
		f.c.cfg.Send(stages.ExpertIO, &stages.HostChanged{Host: l.host, Gone: true})
		f.mu.Lock()
		defer f.mu.Unlock()
		l.place.left = time.Now()
		if !slices.Contains(f.c.cfg.Hosts, l.addr) {
			delete(f.names, l.addr)
		}
		f.renew()
	})
}

// stop ends all.
func (f *found) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for i := range f.places {
		if l := f.places[i].Load(); l != nil {
			l.stop()
		}
	}
}

// tells takes note of what a host says of its group.
func (f *found) tells(l *link, group []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.place.connected, l.place.group = true, group
	if len(group) == 0 {
		f.say(l.addr, "it is in no group yet; start other hosts with --join "+l.addr)
	} else {
		f.names[l.addr] = group[0]
	}
	f.renew()
	l.try()
}

// untried returns the hosts that have not answered yet and were not found to be out of reach.
func (f *found) untried() (all []*link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.places {
		if l := f.places[i].Load(); l != nil && l.tried.Err() == nil {
			all = append(all, l)
		}
	}
	return all
}

// lost takes note that the connection to a host has ended.
func (f *found) lost(l *link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.place.connected, l.place.group = false, nil
	f.renew()
}

// nameOf returns what the host at an address calls itself.
func (f *found) nameOf(addr string) string {
	if name := f.names[addr]; name != "" {
		return name
	}
	return addr
}

// renew gives places to hosts that were told of, and takes those of hosts that have left. The
// caller holds f.mu.
func (f *found) renew() {
	if f.closed || f.c.cfg.Most == 0 {
		return
	}
	wanted, grouped := f.wanted()
	has := make(map[string]bool)
	for i := range f.places {
		l := f.places[i].Load()
		if l == nil || l.place.leaving {
			continue
		}
		name := f.nameOf(l.addr)
		stays := l.place.connected || !grouped || slices.ContainsFunc(wanted, func(addr string) bool { return f.nameOf(addr) == name })
		if has[name] || !stays {
			l.place.leaving = true
			l.stop()
			continue
		}
		has[name] = true
	}
	for _, addr := range wanted {
		if name := f.nameOf(addr); !has[name] {
			has[name] = true
			f.add(addr)
		}
	}
}

// wanted returns the addresses of all hosts that are named or told of, and whether any host tells
// of a group.
func (f *found) wanted() (all []string, grouped bool) {
	all = slices.Clone(f.c.cfg.Hosts)
	for i := range f.places {
		if l := f.places[i].Load(); l != nil && len(l.place.group) > 0 {
			all, grouped = append(all, l.place.group...), true
		}
	}
	return all, grouped
}

// add gives a host a place and dials it.
func (f *found) add(addr string) {
	if check := f.c.cfg.Check; check != nil {
		if err := check(addr); err != nil {
			f.say(addr, err.Error())
			return
		}
	}
	i := f.free(addr)
	if i < 0 {
		f.say(addr, "the group has more hosts than an engine can ask")
		return
	}
	l := f.c.newLink(i, addr)
	if before := f.places[i].Load(); before != nil && before.addr == addr {
		l.figures = before.figuresNow()
	}
	f.places[i].Store(l)
	f.start(l)
}

// free returns the place that a host had before, one that nobody had, or the one that was left
// first; -1 if there is none.
func (f *found) free(addr string) int {
	best := -1
	for i := range f.places {
		switch l := f.places[i].Load(); {
		case l == nil:
			if best < 0 || f.places[best].Load() != nil {
				best = i
			}
		case l.place.left.IsZero():
		case l.addr == addr:
			return i
		case best < 0 || f.places[best].Load() != nil && l.place.left.Before(f.places[best].Load().place.left):
			best = i
		}
	}
	return best
}

// say logs why a host is not asked, once.
func (f *found) say(addr, why string) {
	key := addr + " " + why
	if f.told[key] {
		return
	}
	if len(f.told) >= mostTold {
		clear(f.told)
	}
	f.told[key] = true
	f.c.cfg.Log.Warn("a group of expert hosts", "host", addr, "why", why)
}
