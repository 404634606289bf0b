package store

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// disk is a folder in memory that knows what a loss of power would leave of it.
type disk struct {
	mu      sync.Mutex
	seen    map[string]*node // what processes see
	kept    map[string]*node // what is durable
	pending []change         // of names, since the last Sync, in order
	locks   map[*node]*process
	clock   int64
	ids     uint64
}

// node is a file.
type node struct {
	id            uint64
	content, kept []byte // as seen, as of the last Sync
	used          int64
}

// change is of a name: created (from is ""), renamed, or removed (to is "").
type change struct {
	from, to string
	file     *node
}

func newDisk() *disk {
	return &disk{seen: map[string]*node{}, kept: map[string]*node{}, locks: map[*node]*process{}}
}

// apply makes a change in a folder, as far as it can be made there.
func (c change) apply(names map[string]*node) {
	switch {
	case c.to == "":
		delete(names, c.from)
	case c.from == "":
		names[c.to] = c.file
	case names[c.from] == c.file:
		names[c.to] = c.file
		delete(names, c.from)
	}
}

// clone returns a copy, whose processes are gone.
func (d *disk) clone() *disk {
	c := newDisk()
	c.clock, c.ids = d.clock, d.ids
	copies := map[*node]*node{}
	of := func(n *node) *node {
		if n != nil && copies[n] == nil {
			copies[n] = &node{id: n.id, content: slices.Clone(n.content), kept: slices.Clone(n.kept), used: n.used}
		}
		return copies[n]
	}
	for name, n := range d.seen {
		c.seen[name] = of(n)
	}
	for name, n := range d.kept {
		c.kept[name] = of(n)
	}
	for _, p := range d.pending {
		c.pending = append(c.pending, change{p.from, p.to, of(p.file)})
	}
	return c
}

// outage is what a loss of power leaves.
type outage int

const (
	nothingMore  outage = iota // than what was synced
	namesOnly                  // all changes of names, no content that was not synced
	byChance                   // some changes of names, some of the content
	processAlone               // everything: no power was lost
	outages
)

// after returns what is there when the power is back.
func (d *disk) after(o outage, rng *rand.Rand) *disk {
	c := d.clone()
	if o == processAlone {
		return c
	}
	for _, p := range c.pending {
		if o == namesOnly || o == byChance && rng.IntN(2) == 0 {
			p.apply(c.kept)
		}
	}
	for _, n := range c.kept {
		left := n.kept
		if o == byChance && !bytes.Equal(n.kept, n.content) {
			left = torn(rng, n.content)
		}
		n.content, n.kept = left, slices.Clone(left)
	}
	c.seen, c.pending = maps.Clone(c.kept), nil
	return c
}

// torn returns a content of which some blocks were never written.
func torn(rng *rand.Rand, b []byte) []byte {
	b = slices.Clone(b[:rng.IntN(len(b)+1)])
	for i := 0; i < len(b); i += 64 {
		if rng.IntN(3) == 0 {
			clear(b[i:min(i+64, len(b))])
		}
	}
	return b
}

// fault is what happens to one operation.
type fault int

const (
	failBefore fault = iota // nothing is done, and that is said
	failAfter               // it is done all the same, or the half of it where it has halves
	killBefore              // the process is gone
	killAfter
	faults
)

// process is a disk as one process sees it.
type process struct {
	*disk
	err   error // of a failure
	at    int   // the operation that fails, counted from 1; 0 for none
	as    fault
	stays bool // all operations after it fail, too
	ops   int
	dead  bool
	trail []string // names of the operations

	before func(op string) // is called before each; nil for nothing
}

var _ FS = (*process)(nil)

var (
	errKilled = errors.New("the process is dead")
	errBroken = errors.New("broken on purpose")
)

// do does an operation under the disk's lock, or has it fail. half, if not nil, does a part of it.
func (p *process) do(op string, whole func() error, half func()) error {
	if p.before != nil {
		p.before(op)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errKilled
	}
	p.ops++
	p.trail = append(p.trail, op)
	switch {
	case p.at == 0 || p.ops < p.at:
		return whole()
	case p.ops > p.at && p.stays:
		return p.err
	case p.ops > p.at:
		return whole()
	}
	if p.as == failAfter || p.as == killAfter {
		if half != nil {
			half()
		} else if err := whole(); err != nil {
			return err
		}
	}
	if p.as >= killBefore {
		p.dead = true
		maps.DeleteFunc(p.locks, func(_ *node, owner *process) bool { return owner == p })
		return errKilled
	}
	return p.err
}

// change changes names now, and on the medium by the next Sync.
func (p *process) change(c change) {
	c.apply(p.seen)
	p.pending = append(p.pending, c)
}

func (p *process) create(name string) *node {
	p.ids++
	p.clock++
	n := &node{id: p.ids, used: p.clock}
	p.change(change{"", name, n})
	return n
}

func (p *process) Path() string { return "/disk" }

func (n *node) info(name string) FileInfo {
	return FileInfo{Name: name, Bytes: int64(len(n.content)), Used: time.Unix(0, n.used), ID: n.id}
}

func (p *process) List() (all []FileInfo, err error) {
	err = p.do("list", func() error {
		for _, name := range slices.Sorted(maps.Keys(p.seen)) {
			all = append(all, p.seen[name].info(name))
		}
		return nil
	}, nil)
	return all, err
}

func (p *process) Create(name string) (WriteFile, error) {
	var n *node
	err := p.do("create", func() error {
		if p.seen[name] != nil {
			return fs.ErrExist
		}
		n = p.create(name)
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return &handle{p, n, name}, nil
}

func (p *process) Open(name string) (ReadFile, error) {
	var n *node
	err := p.do("open", func() error {
		if n = p.seen[name]; n == nil {
			return fs.ErrNotExist
		}
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return &handle{p, n, name}, nil
}

func (p *process) Rename(from, to string) error {
	return p.do("rename", func() error {
		n := p.seen[from]
		if n == nil {
			return fs.ErrNotExist
		}
		p.change(change{from, to, n})
		return nil
	}, nil)
}

func (p *process) Remove(name string) error {
	return p.do("remove", func() error {
		n := p.seen[name]
		if n == nil {
			return fs.ErrNotExist
		}
		p.change(change{name, "", n})
		return nil
	}, nil)
}

func (p *process) Sync() error {
	return p.do("sync folder", func() error {
		for _, c := range p.pending {
			c.apply(p.kept)
		}
		p.pending = nil
		return nil
	}, nil)
}

func (p *process) TryLock(name string) (release func(), err error) {
	var n *node
	err = p.do("lock", func() error {
		if n = p.seen[name]; n == nil {
			n = p.create(name)
		}
		if p.locks[n] != nil {
			return ErrLocked
		}
		p.locks[n] = p
		return nil
	}, func() { // the file that was made stays; who failed to lock it has no lock
		if p.seen[name] == nil {
			p.create(name)
		}
	})
	if err != nil {
		return nil, err
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.locks[n] == p {
			delete(p.locks, n)
		}
	}, nil
}

// handle is an open file of a process.
type handle struct {
	p    *process
	n    *node
	name string
}

func (h *handle) Write(b []byte) (n int, err error) {
	write := func(b []byte) {
		h.n.content = append(h.n.content, b...)
		h.p.clock++
		n, h.n.used = len(b), h.p.clock
	}
	err = h.p.do("write", func() error { write(b); return nil }, func() { write(b[:len(b)/2]) })
	return n, err
}

func (h *handle) ReadAt(b []byte, off int64) (n int, err error) {
	err = h.p.do("read", func() error {
		n, err = bytes.NewReader(h.n.content).ReadAt(b, off)
		return err
	}, nil)
	return n, err
}

func (h *handle) Sync() error {
	return h.p.do("sync", func() error { h.n.kept = slices.Clone(h.n.content); return nil }, func() { h.n.kept = slices.Clone(h.n.content[:len(h.n.content)/2]) })
}

func (h *handle) Close() error { return h.p.do("close", func() error { return nil }, nil) }

func (h *handle) Info() (info FileInfo, err error) {
	err = h.p.do("info", func() error { info = h.n.info(h.name); return nil }, nil)
	return info, err
}

func (h *handle) Touch() error {
	return h.p.do("touch", func() error { h.p.clock++; h.n.used = h.p.clock; return nil }, nil)
}

var _ io.Writer = (*handle)(nil)

// tick lets the folder's clock go on, so that uses can be told apart.
func tick(folder FS) {
	if _, ok := folder.(dir); ok {
		time.Sleep(20 * time.Millisecond) // the clock of a file system may go by the kernel's ticks
	}
}
