package constraint

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
)

// A frame is where rules return to that were called at one place of a text. Frames are shared and
// never change: equal ones of a generation are one.
type frame struct {
	id    uint32
	depth int32 // frames below it on the shortest way down
	rets  []ret // sorted
}

type ret struct {
	node   int32
	count  int32
	parent *frame
}

// item is one way to read a text up to a place: a node, how often its repetition has matched, and
// where its rule returns to.
type item struct {
	node  int32
	count int32
	frame *frame
}

// place is all ways to read a text up to where it ends. Equal places of a generation are one;
// what follows from a place is worked out once.
type place struct {
	gen   *generation
	items []item // those that a byte or a text may follow; sorted
	ends  bool   // the text is complete
	next  []atomic.Pointer[place]
	masks atomic.Pointer[maskOf]
}

// nowhere is the place after a text that is not the beginning of any in the grammar.
var nowhere = &place{}

// cacheBytes is about how much memory the places of a grammar and their masks may take.
const cacheBytes = 64 << 20

// machine runs a program for any number of states at once.
type machine struct {
	p     *program
	limit int64 // bytes of a generation
	mu    sync.Mutex
	now   *generation
}

// generation is the places that are known. When they take too much memory, another generation
// begins; what still stands in this one moves over when it is used next.
type generation struct {
	m     *machine
	start *place
	bytes atomic.Int64

	mu     sync.Mutex
	places map[string]*place
	frames map[string]*frame
	work   closure
}

func newMachine(p *program) *machine {
	return &machine{p: p, limit: cacheBytes}
}

// current returns the present generation.
func (m *machine) current() *generation {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now == nil || m.now.bytes.Load() > m.limit {
		g := &generation{m: m, places: map[string]*place{}, frames: map[string]*frame{}}
		g.mu.Lock()
		bottom := g.frame([]ret{{node: endNode}})
		g.start = g.place([]item{{node: m.p.rules[0].start, frame: bottom}})
		g.mu.Unlock()
		m.now = g
	}
	return m.now
}

// after returns the place after one more byte, nowhere if there is none.
func (c *place) after(b byte) *place {
	if c.gen == nil {
		return nowhere
	}
	class := c.gen.m.p.class[b]
	if n := c.next[class].Load(); n != nil {
		return n
	}
	return c.gen.step(c, class)
}

// step works out what follows a place.
func (g *generation) step(c *place, class uint8) *place {
	g.mu.Lock()
	defer g.mu.Unlock()
	var seeds []item
	b := g.m.p.example[class]
	for _, it := range c.items {
		for _, e := range g.m.p.nodes[it.node].edges {
			if e.lo <= b && b <= e.hi {
				seeds = append(seeds, item{e.to, it.count, it.frame})
			}
		}
	}
	n := nowhere
	if len(seeds) > 0 {
		n = g.place(seeds)
	}
	c.next[class].Store(n)
	return n
}

// moved returns the place that c is in this generation.
func (g *generation) moved(c *place) *place {
	if c.gen == g || c.gen == nil {
		return c
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	known := map[*frame]*frame{nil: nil}
	items := slices.Clone(c.items)
	for i := range items {
		items[i].frame = g.movedFrame(items[i].frame, known)
	}
	return g.intern(items, c.ends)
}

func (g *generation) movedFrame(f *frame, known map[*frame]*frame) *frame {
	if to, ok := known[f]; ok {
		return to
	}
	rets := slices.Clone(f.rets)
	for i := range rets {
		rets[i].parent = g.movedFrame(rets[i].parent, known)
	}
	to := g.frame(rets)
	known[f] = to
	return to
}

// frame returns the frame that returns to rets, which it keeps. g.mu is held.
func (g *generation) frame(rets []ret) *frame {
	slices.SortFunc(rets, func(a, b ret) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.count, b.count), cmp.Compare(a.parent.number(), b.parent.number()))
	})
	rets = slices.Compact(rets)
	key := make([]byte, 0, 12*len(rets))
	for _, r := range rets {
		key = appendKey(key, r.node, r.count, r.parent)
	}
	if f, ok := g.frames[string(key)]; ok {
		return f
	}
	f := &frame{id: uint32(len(g.frames) + 1), rets: rets, depth: maxDepth}
	for _, r := range rets {
		if r.parent == nil {
			f.depth = 0
		} else {
			f.depth = min(f.depth, r.parent.depth+1)
		}
	}
	g.frames[string(key)] = f
	g.bytes.Add(int64(100 + len(key) + 16*len(rets)))
	return f
}

func (f *frame) number() uint32 {
	if f == nil {
		return 0
	}
	return f.id
}

func appendKey(key []byte, node, count int32, f *frame) []byte {
	key = binary.LittleEndian.AppendUint32(key, uint32(node))
	key = binary.LittleEndian.AppendUint32(key, uint32(count))
	return binary.LittleEndian.AppendUint32(key, f.number())
}

// place returns the place of the items that follow from seeds. g.mu is held.
func (g *generation) place(seeds []item) *place {
	items, ends := g.work.of(g, seeds)
	return g.intern(items, ends)
}

// intern returns the place of items that are complete; it does not keep them. g.mu is held.
func (g *generation) intern(items []item, ends bool) *place {
	if len(items) == 0 && !ends {
		return nowhere
	}
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.count, b.count), cmp.Compare(a.frame.number(), b.frame.number()))
	})
	key := make([]byte, 0, 12*len(items)+1)
	for _, it := range items {
		key = appendKey(key, it.node, it.count, it.frame)
	}
	if ends {
		key = append(key, 1)
	}
	if c, ok := g.places[string(key)]; ok {
		return c
	}
	c := &place{gen: g, items: slices.Clone(items), ends: ends, next: make([]atomic.Pointer[place], len(g.m.p.example))}
	g.places[string(key)] = c
	g.bytes.Add(int64(150 + len(key) + 16*len(items) + 8*len(c.next)))
	return c
}
